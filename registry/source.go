package registry

import (
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// module is the prefix that is left out of the names of our own functions.
const module = "github.com/headgate/headgate/"

// The n-th init function of a package is named init.n.
var numbered = regexp.MustCompile(`\.init\.\d+(\.|$)`)

// caller describes who called the exported function that calls it: function and
// line, such as "adapters/catalog.init (catalog.go:31)". The folder is left out,
// because it belongs to the machine that built the program.
func caller() string {
	var pc [1]uintptr
	if runtime.Callers(3, pc[:]) == 0 { // Callers, caller, the exported function
		return "an unknown caller"
	}
	f, _ := runtime.CallersFrames(pc[:]).Next()
	name := numbered.ReplaceAllString(strings.TrimPrefix(f.Function, module), ".init$1")
	return fmt.Sprintf("%s (%s:%d)", name, filepath.Base(f.File), f.Line)
}
