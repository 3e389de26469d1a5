// Checks a dashboard against Grafana's schema: no unknown field, none missing, no wrong type.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	plugins.RegisterDefaultPlugins()
	if err := check(os.Args[1]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func check(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	found := dashboard.Dashboard{}
	err = found.UnmarshalJSONStrict(text)
	// It returns an empty list of faults as an error.
	if faults := (cog.BuildErrors{}); err != nil && !(errors.As(err, &faults) && len(faults) == 0) {
		return err
	}
	return found.Validate()
}
