// Runs the health checks of Argo CD, in the interpreter that Argo CD has.
module mcad.test/controlplane/lua

go 1.26.0

tool mcad.test/controlplane/lua/health

require github.com/yuin/gopher-lua v1.1.1
