// Checks dashboards of Grafana.
module mcad.test/controlplane/dashboards

go 1.26.0

tool mcad.test/controlplane/dashboards/checkdashboard

require github.com/grafana/grafana-foundation-sdk/go v0.0.22
