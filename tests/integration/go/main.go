// Command clients uses a broker through one client library: `clients LIBRARY SERVER` runs what the library can do, prints
// the name of each part when it has passed, and ends with status 1 at the first that has not.
//
// The topic "ours" has the records of `written`, which another client wrote; "LIBRARY-codecs" gets the same from here.
package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"time"
)

// Longer than any part takes on a busy machine.
const soon = 60 * time.Second

const firstTime = 1_700_000_000_000

var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

const perCodec = 20

// record is a record as every library has it.
type record struct {
	key, value, headerKey, headerValue string
	millis                             int64
}

// written are the records of a codec, in order.
func written(codec string) []record {
	var found []record
	for n := range perCodec {
		found = append(found, record{
			fmt.Sprintf("k%d", n), fmt.Sprintf("%s %d", codec, n), "codec", codec, firstTime + int64(n),
		})
	}
	return found
}

// all are the records of all codecs.
func all() []record {
	var found []record
	for _, codec := range codecs {
		found = append(found, written(codec)...)
	}
	return found
}

// large are messages of several megabytes that no codec makes smaller.
func large() [][]byte {
	found := make([][]byte, 3)
	source := rand.New(rand.NewSource(1))
	for n := range found {
		found[n] = make([]byte, 5_000_000+n)
		source.Read(found[n])
	}
	return found
}

type part struct {
	name string
	run  func(context.Context, string)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func equal(found, expected any) {
	if found, expected := fmt.Sprint(found), fmt.Sprint(expected); found != expected {
		panic(fmt.Sprintf("found %.2000s\nexpected %.2000s", found, expected))
	}
}

// until waits for what other goroutines bring about.
func until(ctx context.Context, holds func() bool) {
	for !holds() {
		check(ctx.Err())
		time.Sleep(5 * time.Millisecond)
	}
}

func main() {
	libraries := map[string][]part{"franz-go": franzParts, "kafka-go": segmentioParts, "sarama": saramaParts}
	for _, part := range libraries[os.Args[1]] {
		func() {
			ctx, cancel := context.WithTimeout(context.Background(), soon)
			defer cancel()
			defer func() {
				if problem := recover(); problem != nil {
					fmt.Fprintf(os.Stderr, "%s: %v\n", part.name, problem)
					os.Exit(1)
				}
			}()
			part.run(ctx, os.Args[2])
		}()
		fmt.Println(part.name)
	}
}
