// Command peers measures franz-go.
//
//	peers records|messages SECONDS FILE...        one thread's processor time; see records.go and messages.go
//	peers produce|consume HOST:PORT TOPIC CODEC RECORDS    with a broker; see live.go
package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

func main() {
	runtime.LockOSThread()
	work, arguments := os.Args[1], os.Args[2:]
	switch work {
	case "records", "messages":
		seconds := must(strconv.ParseFloat(arguments[0], 64))
		for _, path := range arguments[1:] {
			map[string]func(string, float64){"records": records, "messages": messages}[work](path, seconds)
		}
	case "produce", "consume":
		count := must(strconv.Atoi(arguments[3]))
		map[string]func(string, string, string, int){"produce": produce, "consume": consume}[work](
			arguments[0], arguments[1], arguments[2], count)
	default:
		panic("unknown work: " + work)
	}
}

const (
	turns           = 5
	turnNanoseconds = 20_000_000
)

// best is the shortest call of five turns of 20 ms, as in benchmarks/contest.py, after so many seconds of calls. It is
// in nanoseconds of this thread.
func best(warmUpSeconds float64, call func()) int64 {
	const clock = unix.CLOCK_THREAD_CPUTIME_ID
	for begin := processorTime(clock); float64(processorTime(clock)-begin) < warmUpSeconds*1e9; {
		call()
	}
	least := int64(math.MaxInt64)
	for range turns {
		begin := processorTime(clock)
		for start := begin; start-begin < turnNanoseconds; {
			call()
			now := processorTime(clock)
			least, start = min(least, now-start), now
		}
	}
	return least
}

// processorTime is a clock of this thread or process, in nanoseconds. That of getrusage only moves with ticks.
func processorTime(clock int32) int64 {
	var now unix.Timespec
	check(unix.ClockGettime(clock, &now))
	return now.Nano()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}
