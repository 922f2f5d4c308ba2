package httpjob

import (
	"runtime/debug"
	"strings"
)

const module = "github.com/weirq/weir"

// version is that of this module in the running binary, or "dev".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	found := ""
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module {
			found = m.Version
		}
	}
	if found == "" || strings.HasPrefix(found, "(") {
		return "dev"
	}
	return strings.TrimPrefix(found, "v")
}
