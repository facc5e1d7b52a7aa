package main

const usage = `usage: osint [flags] [indicator ...]

Looks indicators up (IP addresses, domains, URLs, hashes, e-mail addresses) at every
provider that takes their kind, each provider at the pace that it allows. Offline,
unless -live is given: the providers are played on this machine.

  osint                          the list that it ships: 60 public indicators
  osint 1.1.1[.]1 example.com    these
  osint -f a.txt -f b.txt        lists, one indicator a line
  cat list.txt | osint -         the standard input

  osint -serve 127.0.0.1:8080                    with a page that shows the run

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

What a run spends of limits whose window is longer than 10 s is kept in the ledger: the
next run knows it, killed or not, and runs at once share it. It counts the keys of a
provider by the names of their variables. -list and, with -live, -plan tell what is gone
(a plan takes all that a sliding window has counted to come back with the first of it;
what other runs will take it cannot know). Played providers have a ledger of their own
for each -speed. They begin anew with each run, the ledger does not: -ledger none begins
with all limits empty. Give each run an -o of its own.

exit code: 0 something was answered, 1 nothing was or the results could not be
written, 2 wrong usage or nothing to look up, 130 stopped by Ctrl-C.
`
