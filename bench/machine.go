package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// machine is where and when it was measured.
type machine struct {
	when        time.Time
	cpu, goes   string
	cores       int
	load        string // how busy it was at the beginning; "": not known
	headgate    string // the commit
	moduleNames map[string]string
}

func thisMachine(ctx context.Context, begun time.Time) machine {
	m := machine{when: begun, cpu: "unknown CPU", goes: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		cores: runtime.GOMAXPROCS(0), headgate: commit(ctx), moduleNames: map[string]string{}}
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if name, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
				m.cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	m.load = load()
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			m.moduleNames[d.Path] = d.Version
		}
	}
	return m
}

// load is how many processes wanted to run in the last five minutes.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if f := strings.Fields(string(b)); err == nil && len(f) > 1 {
		return f[1]
	}
	return ""
}

// busy tells that more wanted to run than this program and the cores have room for.
func (m machine) busy() bool {
	l, err := strconv.ParseFloat(m.load, 64)
	return err == nil && l > 1.5*float64(m.cores)+1
}

// commit is that of the working directory, if git knows it. Changes to documents say
// nothing of the program.
func commit(ctx context.Context) string {
	id, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return ""
	}
	s := "commit " + string(bytes.TrimSpace(id))
	if changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", "*.go").Output(); err == nil && len(changed) > 0 {
		s += " with changes"
	}
	return s
}

// version is that of a module that is compiled in.
func (m machine) version(module string) string {
	if v := m.moduleNames[module]; v != "" {
		return v
	}
	return "version unknown"
}

func (m machine) String() string {
	s := fmt.Sprintf("%s, %d cores, %s", m.cpu, m.cores, m.goes)
	if m.load != "" {
		s += ", load " + m.load + " in the last five minutes of it"
	}
	return s
}
