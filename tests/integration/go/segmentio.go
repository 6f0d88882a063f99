package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sort"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
)

// Its groups join without asking for a member id first.
var segmentioParts = []part{
	{"admin", segmentioAdmin},
	{"codecs", segmentioCodecs},
	{"seek by timestamp", segmentioSeek},
	{"large messages", segmentioLarge},
	{"group", segmentioGroup},
	{"deletion", segmentioDeletion},
}

func segmentio(server string) *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(server), Timeout: soon}
}

func segmentioReads(ctx context.Context, server, topic string, count int) []kafka.Message {
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{server}, Topic: topic, MaxBytes: 16 << 20, MaxWait: 100 * time.Millisecond})
	var found []kafka.Message
	for range count {
		found = append(found, must(reader.ReadMessage(ctx)))
	}
	check(reader.Close())
	return found
}

func segmentioAdmin(ctx context.Context, server string) {
	connection := must(kafka.Dial("tcp", server))
	controller := must(connection.Controller())
	check(connection.Close())
	equal(net.JoinHostPort(controller.Host, strconv.Itoa(controller.Port)), server)
	connection = must(kafka.Dial("tcp", server))
	for topic, partitions := range map[string]int{"kafka-go-codecs": 1, "kafka-go-large": 1, "kafka-go-group": 4, "kafka-go-more": 3} {
		configs := []kafka.ConfigEntry{{ConfigName: "max.message.bytes", ConfigValue: "8388608"}}
		check(connection.CreateTopics(kafka.TopicConfig{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: configs}))
	}
	equal(len(must(connection.ReadPartitions("kafka-go-more"))), 3)
	client := segmentio(server)
	created := must(client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: "kafka-go-more", Count: 4}},
	}))
	check(created.Errors["kafka-go-more"])
	resource := kafka.DescribeConfigRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: "kafka-go-large", ConfigNames: []string{"max.message.bytes"}}
	described := must(client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{resource}}))
	equal(described.Resources[0].ConfigEntries[0].ConfigValue, "8388608")
	altered := must(client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: "kafka-go-large",
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: "retention.ms", Value: "60000", ConfigOperation: kafka.ConfigOperationSet}},
		}},
	}))
	check(altered.Resources[0].Error)
	equal(len(must(connection.ReadPartitions("kafka-go-more"))), 4)
	check(connection.Close())
}

func segmentioCodecs(ctx context.Context, server string) {
	kinds := map[string]kafka.Compression{"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd}
	for _, codec := range codecs {
		writer := &kafka.Writer{
			Addr: kafka.TCP(server), Topic: "kafka-go-codecs", Compression: kinds[codec], RequiredAcks: kafka.RequireAll,
			BatchTimeout: 5 * time.Millisecond,
		}
		var messages []kafka.Message
		for _, r := range written(codec) {
			messages = append(messages, kafka.Message{
				Key: []byte(r.key), Value: []byte(r.value), Time: time.UnixMilli(r.millis),
				Headers: []kafka.Header{{Key: r.headerKey, Value: []byte(r.headerValue)}},
			})
		}
		check(writer.WriteMessages(ctx, messages...))
		check(writer.Close())
	}
	for _, topic := range []string{"ours", "kafka-go-codecs"} {
		var found []record
		for n, message := range segmentioReads(ctx, server, topic, len(all())) {
			equal(message.Offset, n)
			header := message.Headers[0]
			found = append(found, record{string(message.Key), string(message.Value), header.Key, string(header.Value), message.Time.UnixMilli()})
		}
		equal(found, all())
	}
}

func segmentioSeek(ctx context.Context, server string) {
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{server}, Topic: "kafka-go-codecs", MaxWait: 100 * time.Millisecond})
	check(reader.SetOffsetAt(ctx, time.UnixMilli(firstTime+7)))
	equal(must(reader.ReadMessage(ctx)).Offset, 7)
	check(reader.Close())
	asked := map[string][]kafka.OffsetRequest{"kafka-go-codecs": {kafka.FirstOffsetOf(0), kafka.LastOffsetOf(0)}}
	answered := must(segmentio(server).ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: asked})).Topics["kafka-go-codecs"][0]
	equal([]int64{answered.FirstOffset, answered.LastOffset}, []int{0, len(all())})
}

func segmentioLarge(ctx context.Context, server string) {
	writer := &kafka.Writer{Addr: kafka.TCP(server), Topic: "kafka-go-large", BatchBytes: 8 << 20, BatchTimeout: time.Millisecond}
	for _, value := range large() {
		check(writer.WriteMessages(ctx, kafka.Message{Value: value}))
	}
	check(writer.Close())
	for n, message := range segmentioReads(ctx, server, "kafka-go-large", len(large())) {
		equal(string(message.Value) == string(large()[n]), true)
	}
}

// segmentioMember reads as a member of the group and commits, in the background.
type segmentioMember struct {
	reader *kafka.Reader
	stop   context.CancelFunc
	ended  chan error
	count  atomic.Int64
}

func segmentioJoins(server string) *segmentioMember {
	reading, stop := context.WithCancel(context.Background())
	member := &segmentioMember{stop: stop, ended: make(chan error, 1), reader: kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{server}, GroupID: "segmentio", Topic: "kafka-go-group", HeartbeatInterval: 100 * time.Millisecond,
		MaxWait: 100 * time.Millisecond, JoinGroupBackoff: 100 * time.Millisecond,
	})}
	go func() {
		for {
			message, err := member.reader.FetchMessage(reading)
			if err == nil {
				err = member.reader.CommitMessages(reading, message)
			}
			if err != nil {
				member.ended <- err
				return
			}
			member.count.Add(1)
		}
	}()
	return member
}

func (member *segmentioMember) leaves() {
	member.stop()
	if err := <-member.ended; !errors.Is(err, context.Canceled) {
		panic(err)
	}
	check(member.reader.Close())
}

func segmentioGroup(ctx context.Context, server string) {
	client := segmentio(server)
	writer := &kafka.Writer{
		Addr: kafka.TCP(server), Topic: "kafka-go-group", BatchTimeout: time.Millisecond,
		Balancer: kafka.BalancerFunc(func(message kafka.Message, partitions ...int) int {
			return int(message.Value[0]) % len(partitions)
		}),
	}
	write := func() {
		var messages []kafka.Message
		for n := range 40 {
			messages = append(messages, kafka.Message{Value: []byte{byte(n)}})
		}
		check(writer.WriteMessages(ctx, messages...))
	}
	shares := func() string {
		described := must(client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{"segmentio"}})).Groups[0]
		var found []int
		for _, member := range described.Members {
			count := 0
			for _, topic := range member.MemberAssignments.Topics {
				count += len(topic.Partitions)
			}
			found = append(found, count)
		}
		sort.Ints(found)
		return fmt.Sprint(found)
	}
	write()
	first := segmentioJoins(server)
	until(ctx, func() bool { return shares() == "[4]" && first.count.Load() == 40 })
	second := segmentioJoins(server)
	until(ctx, func() bool { return shares() == "[2 2]" })
	write()
	until(ctx, func() bool { return first.count.Load()+second.count.Load() == 80 })
	equal(second.count.Load(), 20)
	first.leaves()
	until(ctx, func() bool { return shares() == "[4]" })
	write()
	until(ctx, func() bool { return second.count.Load() == 60 })
	second.leaves()
	check(writer.Close())
	committed := must(client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{
		GroupID: "segmentio", Topics: map[string][]int{"kafka-go-group": {0, 1, 2, 3}},
	}))
	for _, partition := range committed.Topics["kafka-go-group"] {
		equal(partition.CommittedOffset, 30)
	}
}

func segmentioDeletion(ctx context.Context, server string) {
	client := segmentio(server)
	check(must(client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{"segmentio"}})).Errors["segmentio"])
	listed := must(client.ListGroups(ctx, &kafka.ListGroupsRequest{}))
	for _, group := range listed.Groups {
		equal(group.GroupID == "segmentio", false)
	}
	check(must(client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{"kafka-go-large"}})).Errors["kafka-go-large"])
}
