package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sys/unix"
)

// The same as in benchmarks/live_clients.py.
const (
	valueBytes          = 100
	linger              = 5 * time.Millisecond
	partitionFetchBytes = 4 << 20
)

type stopwatch struct {
	processor int64
	wall      time.Time
}

func started() stopwatch { return stopwatch{processorTime(unix.CLOCK_PROCESS_CPUTIME_ID), time.Now()} }

// stop prints the number of records and the seconds: the processor's and the clock's.
func (s stopwatch) stop(records int) {
	wall := time.Since(s.wall).Seconds()
	fmt.Println(records, float64(processorTime(unix.CLOCK_PROCESS_CPUTIME_ID)-s.processor)/1e9, wall)
}

func produce(server, topic, codec string, count int) {
	codecs := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "lz4": kgo.Lz4Compression()}
	client := must(kgo.NewClient(kgo.SeedBrokers(server), kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(linger),
		kgo.ProducerBatchCompression(codecs[codec]), kgo.MaxBufferedRecords(1_000_000), kgo.AllowAutoTopicCreation()))
	defer client.Close()
	ctx, half := context.Background(), make([]byte, valueBytes/2)
	must(rand.Read(half))
	value := []byte(hex.EncodeToString(half))
	check(client.ProduceSync(ctx, &kgo.Record{}).FirstErr())
	var delivered atomic.Int64
	known := func(_ *kgo.Record, err error) {
		check(err)
		delivered.Add(1)
	}
	watch := started()
	for i := range count {
		client.Produce(ctx, &kgo.Record{Key: fmt.Appendf(nil, "k%09d", i), Value: value}, known)
	}
	check(client.Flush(ctx))
	watch.stop(count)
	if delivered.Load() != int64(count) {
		check(fmt.Errorf("%d records of %d were delivered", delivered.Load(), count))
	}
}

func consume(server, topic, _ string, count int) {
	start := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}
	client := must(kgo.NewClient(kgo.SeedBrokers(server), kgo.ConsumePartitions(start),
		kgo.FetchMaxPartitionBytes(partitionFetchBytes)))
	defer client.Close()
	ctx, found, total := context.Background(), 0, 0
	check(client.PollRecords(ctx, 1).Err())
	watch := started()
	for found < count-1 {
		fetches := client.PollRecords(ctx, 10_000)
		check(fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			found++
			total += len(r.Value)
		})
	}
	watch.stop(found)
	if total < found*valueBytes {
		check(fmt.Errorf("%d bytes in %d records", total, found))
	}
}
