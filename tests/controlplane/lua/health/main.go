// Prints the status and the message of a health check of Argo CD: the Lua of a file about the
// object on standard input, with the libraries that Argo CD opens.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	lua "github.com/yuin/gopher-lua"
)

func main() {
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(script string) error {
	var obj any
	if err := json.NewDecoder(os.Stdin).Decode(&obj); err != nil {
		return err
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for _, open := range []lua.LGFunction{lua.OpenPackage, lua.OpenBase, lua.OpenTable, lua.OpenString} {
		state.Push(state.NewFunction(open))
		if err := state.PCall(0, 0, nil); err != nil {
			return err
		}
	}
	state.SetGlobal("obj", value(state, obj))
	if err := state.DoFile(script); err != nil {
		return err
	}
	health, isTable := state.Get(-1).(*lua.LTable)
	if !isTable {
		return fmt.Errorf("the script returns no table but %s", state.Get(-1).Type())
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]string{
		"status":  health.RawGetString("status").String(),
		"message": health.RawGetString("message").String(),
	})
}

func value(state *lua.LState, of any) lua.LValue {
	switch one := of.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, each := range one {
			table.RawSetString(key, value(state, each))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, each := range one {
			table.Append(value(state, each))
		}
		return table
	case string:
		return lua.LString(one)
	case float64:
		return lua.LNumber(one)
	case bool:
		return lua.LBool(one)
	}
	return lua.LNil
}
