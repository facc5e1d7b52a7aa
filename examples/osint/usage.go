package main

const usage = `usage: osint [flags] [indicator ...]

Looks indicators up (IP addresses, domains, URLs, hashes, e-mail addresses) at every
provider that takes their kind, each provider at the pace that it allows. Offline,
unless -live is given: the providers are played on this machine.

  osint                          the list that it ships: 60 public indicators
  osint 1.1.1[.]1 example.com    these
  osint -f a.txt -f b.txt        lists, one indicator a line
  cat list.txt | osint -         the standard input

  osint -list                                    what there is, and which keys are set
  osint -live -f a.txt -plan                     when all would be done; sends nothing
  osint -live -f a.txt -o a.jsonl -resume a.run  can be stopped, and goes on where it was

Offline it plays five providers, so that it takes half a minute; -providers all
plays the whole catalogue. With -live it asks all whose keys are set, and those
that need none.

flags:
`

const exits = `
A URL is looked up as such, and its host besides. What cannot be recognised (a phone
number, a company, a text) is looked up with -as.

A results file has a line for each lookup and list: "ok" and "empty" say that the
provider was asked and has no data; without "ok" there is an "error", with the time
at which to ask again. Where -resume asked again there is a further line: the last
one counts. In CSV a cell that a spreadsheet would take for a formula
begins with an apostrophe.

SIGHUP reads the -config file again while the run goes on.

A run knows nothing of what an earlier one has spent, -resume and -plan included: wait
for a minute's window before the same provider is asked again, and mind what is left of
the day. Give each run an -o of its own.

exit code: 0 something was answered, 1 nothing was or the results could not be
written, 2 wrong usage or nothing to look up, 130 stopped by Ctrl-C.
`
