package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchBytes is about what one fetch returns of a partition.
const fetchBytes = 1 << 20

// records reads a record set as franz-go's consumer does, with checksums. It prints the number of records, what
// benchmarks/compared.py compares, and the nanoseconds of the best round.
func records(path string, seconds float64) {
	parts := answers(must(os.ReadFile(path)))
	var offsets, times uint64
	var crc uint32
	count := read(parts, func(r *kgo.Record) {
		offsets += uint64(r.Offset)
		times += uint64(r.Timestamp.UnixMilli())
		crc = crc32.Update(crc32.Update(crc, crc32.IEEETable, r.Key), crc32.IEEETable, r.Value)
	})
	var touched int
	nanoseconds := best(seconds, func() {
		read(parts, func(r *kgo.Record) { touched += len(r.Key) + len(r.Value) + len(r.Headers) })
	})
	fmt.Println(count, offsets, times, crc, nanoseconds)
}

func read(parts [][]byte, each func(*kgo.Record)) (count int) {
	decompressor := kgo.DefaultDecompressor()
	next := int64(0)
	for _, part := range parts {
		answer := kmsg.FetchResponseTopicPartition{RecordBatches: part}
		options := kgo.ProcessFetchPartitionOpts{Offset: next, Topic: "topic"}
		found, after := kgo.ProcessFetchPartition(options, &answer, decompressor, nil)
		check(found.Err)
		for _, record := range found.Records {
			each(record)
		}
		next = after
		count += len(found.Records)
	}
	return count
}

// answers divides a record set between batches.
func answers(data []byte) (parts [][]byte) {
	start := 0
	for at := 0; at < len(data); {
		at += 12 + int(binary.BigEndian.Uint32(data[at+8:]))
		if at-start >= fetchBytes || at == len(data) {
			parts = append(parts, data[start:at])
			start = at
		}
	}
	return parts
}
