package main

import _ "embed"

//go:embed indicators.txt
var shipped string

func main() {}
