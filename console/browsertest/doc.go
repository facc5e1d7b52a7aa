// Package browsertest tests package console in a real browser. It is a module of its
// own, so that who wants the page does not get a browser driver along, and has no code
// but its tests.
package browsertest
