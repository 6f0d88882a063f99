package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type message interface {
	SetVersion(int16)
	ReadFrom([]byte) error
	AppendTo([]byte) []byte
}

// messages decodes and encodes a body, whose file is named key-kind-version. It prints its bytes and the nanoseconds of
// decoding, then of encoding into an existing buffer.
func messages(path string, seconds float64) {
	data := must(os.ReadFile(path))
	name := strings.Split(filepath.Base(path), "-")
	key, version := int16(must(strconv.Atoi(name[0]))), int16(must(strconv.Atoi(name[2])))
	made := func() message {
		var m message
		if name[1] == "request" {
			m = kmsg.RequestForKey(key)
		} else {
			m = kmsg.ResponseForKey(key)
		}
		m.SetVersion(version)
		return m
	}
	decoded := made()
	check(decoded.ReadFrom(data))
	buffer := decoded.AppendTo(make([]byte, 0, len(data)))
	if !bytes.Equal(buffer, data) {
		check(fmt.Errorf("other bytes: %s", path))
	}
	const calls = 100
	times := func(call func()) int64 {
		return best(seconds, func() {
			for range calls {
				call()
			}
		}) / calls
	}
	fmt.Println(len(data), times(func() { check(made().ReadFrom(data)) }))
	fmt.Println(len(data), times(func() { buffer = decoded.AppendTo(buffer[:0]) }))
}
