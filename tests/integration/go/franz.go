package main

import (
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

var franzParts = []part{
	{"admin", franzAdmin},
	{"codecs", franzCodecs},
	{"seek by timestamp", franzSeek},
	{"large messages", franzLarge},
	{"group", func(ctx context.Context, server string) { franzGroup(ctx, server, "franz-classic") }},
	{"group of KIP-848", func(ctx context.Context, server string) {
		franzGroup(ctx, server, "franz-modern", kgo.WithContext(context.WithValue(ctx, "opt_in_kafka_next_gen_balancer_beta", true)))
	}},
	{"static members", franzStatic},
	{"share group", franzShare},
	{"transactions", franzTransactions},
	{"exactly once", franzExactlyOnce},
	{"deletion", franzDeletion},
}

func franz(server string, options ...kgo.Opt) *kgo.Client {
	common := []kgo.Opt{kgo.SeedBrokers(server), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}
	return must(kgo.NewClient(append(common, options...)...))
}

// franzReads is so many records of a client that consumes.
func franzReads(ctx context.Context, client *kgo.Client, count int) []*kgo.Record {
	var found []*kgo.Record
	for len(found) < count {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		found = append(found, fetches.Records()...)
	}
	return found
}

func franzValues(ctx context.Context, server, topic string, count int, options ...kgo.Opt) []string {
	client := franz(server, append(options, kgo.ConsumeTopics(topic))...)
	defer client.Close()
	var found []string
	for _, r := range franzReads(ctx, client, count) {
		found = append(found, string(r.Value))
	}
	return found
}

func franzAdmin(ctx context.Context, server string) {
	admin := kadm.NewClient(franz(server))
	defer admin.Close()
	eightMegabytes := "8388608"
	for topic, partitions := range map[string]int32{
		"franz-go-codecs": 1, "franz-go-large": 1, "franz-go-group": 4, "franz-go-shared": 2, "franz-go-transactions": 1, "franz-go-copies": 1,
	} {
		check(must(admin.CreateTopic(ctx, partitions, 1, map[string]*string{"max.message.bytes": &eightMegabytes}, topic)).Err)
	}
	_, err := admin.CreateTopic(ctx, 1, 1, nil, "ours")
	equal(err, kerr.TopicAlreadyExists)
	check(must(admin.CreatePartitions(ctx, 1, "franz-go-shared"))["franz-go-shared"].Err)
	equal(len(must(admin.ListTopics(ctx, "franz-go-shared"))["franz-go-shared"].Partitions), 3)
	value := "60000"
	changes := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}}
	check(must(admin.AlterTopicConfigs(ctx, changes, "franz-go-large"))[0].Err)
	configs := must(must(admin.DescribeTopicConfigs(ctx, "franz-go-large")).On("franz-go-large", nil)).Configs
	found := map[string]string{}
	for _, config := range configs {
		found[config.Key] = config.MaybeValue()
	}
	equal([]string{found["retention.ms"], found["max.message.bytes"], found["cleanup.policy"]}, []string{"60000", eightMegabytes, "delete"})
	equal(len(must(admin.BrokerMetadata(ctx)).Brokers), 1)
	logs := must(admin.DescribeAllLogDirs(ctx, nil))
	equal(len(logs.Sorted()), 1)
	quota := kadm.AlterClientQuotaEntry{
		Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: kadm.StringPtr("franz")}},
		Ops:    []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 1e6}},
	}
	check(must(admin.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{quota}))[0].Err)
	user := kadm.UpsertSCRAM{User: "franz", Mechanism: kadm.ScramSha256, Iterations: 4096, Password: "secret"}
	check(must(admin.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{user}))["franz"].Err)
	equal(must(admin.DescribeUserSCRAMs(ctx, "franz"))["franz"].CredInfos[0].Iterations, 4096)
}

func franzCodecs(ctx context.Context, server string) {
	kinds := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for _, codec := range codecs {
		// What follows within the time goes into the same batch: one record alone is not worth compressing.
		producer := franz(server, kgo.ProducerBatchCompression(kinds[codec]), kgo.ProducerLinger(20*time.Millisecond))
		var records []*kgo.Record
		for _, r := range written(codec) {
			records = append(records, &kgo.Record{
				Topic: "franz-go-codecs", Key: []byte(r.key), Value: []byte(r.value), Timestamp: time.UnixMilli(r.millis),
				Headers: []kgo.RecordHeader{{Key: r.headerKey, Value: []byte(r.headerValue)}},
			})
		}
		check(producer.ProduceSync(ctx, records...).FirstErr())
		producer.Close()
	}
	for _, topic := range []string{"ours", "franz-go-codecs"} {
		consumer := franz(server, kgo.ConsumeTopics(topic))
		var found []record
		for n, r := range franzReads(ctx, consumer, len(all())) {
			equal(r.Offset, n)
			header := r.Headers[0]
			found = append(found, record{string(r.Key), string(r.Value), header.Key, string(header.Value), r.Timestamp.UnixMilli()})
		}
		consumer.Close()
		equal(found, all())
	}
}

func franzSeek(ctx context.Context, server string) {
	admin := kadm.NewClient(franz(server))
	defer admin.Close()
	equal(must(admin.ListOffsetsAfterMilli(ctx, firstTime+7, "franz-go-codecs"))["franz-go-codecs"][0].Offset, 7)
	equal(must(admin.ListEndOffsets(ctx, "franz-go-codecs"))["franz-go-codecs"][0].Offset, len(all()))
	equal(must(admin.ListMaxTimestampOffsets(ctx, "franz-go-codecs"))["franz-go-codecs"][0].Offset, perCodec-1)
	consumer := franz(server, kgo.ConsumeTopics("franz-go-codecs"), kgo.ConsumeResetOffset(kgo.NewOffset().AfterMilli(firstTime+19)))
	defer consumer.Close()
	equal(franzReads(ctx, consumer, 1)[0].Offset, 19)
}

func franzLarge(ctx context.Context, server string) {
	producer := franz(server, kgo.ProducerBatchMaxBytes(8<<20), kgo.DefaultProduceTopic("franz-go-large"))
	for _, value := range large() {
		check(producer.ProduceSync(ctx, &kgo.Record{Value: value}).FirstErr())
	}
	producer.Close()
	consumer := franz(server, kgo.ConsumeTopics("franz-go-large"), kgo.FetchMaxPartitionBytes(1<<20))
	defer consumer.Close()
	for n, r := range franzReads(ctx, consumer, len(large())) {
		equal(string(r.Value) == string(large()[n]), true)
	}
}

// franzMember polls in the background, as members of groups have to.
type franzMember struct {
	client *kgo.Client
	stop   context.CancelFunc
	ended  chan struct{}
}

func joins(server, group, topic string, options ...kgo.Opt) *franzMember {
	options = append(options, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.AutoCommitMarks(),
		kgo.HeartbeatInterval(100*time.Millisecond))
	member := &franzMember{client: franz(server, options...), ended: make(chan struct{})}
	polling, stop := context.WithCancel(context.Background())
	member.stop = stop
	go func() {
		defer close(member.ended)
		for polling.Err() == nil {
			for _, r := range member.client.PollFetches(polling).Records() {
				member.client.MarkCommitRecords(r)
			}
		}
	}()
	return member
}

func (member *franzMember) leaves() {
	member.stop()
	<-member.ended
	member.client.Close()
}

func franzGroup(ctx context.Context, server, group string, options ...kgo.Opt) {
	admin := kadm.NewClient(franz(server))
	defer admin.Close()
	producer := franz(server, kgo.DefaultProduceTopic("franz-go-group"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for n := range 40 {
		check(producer.ProduceSync(ctx, &kgo.Record{Value: []byte(fmt.Sprint(n)), Partition: int32(n % 4)}).FirstErr())
	}
	producer.Close()
	end := must(admin.ListEndOffsets(ctx, "franz-go-group"))["franz-go-group"][3].Offset
	// shares is how many partitions each member of the group has, the fewest first.
	shares := func() string {
		var found []int
		if group == "franz-modern" {
			for _, member := range must(admin.DescribeConsumerGroups(ctx, group))[group].Members {
				found = append(found, len(member.Assignment["franz-go-group"]))
			}
		} else {
			for _, member := range must(admin.DescribeGroups(ctx, group))[group].Members {
				assigned, _ := member.Assigned.AsConsumer()
				count := 0
				if assigned != nil {
					for _, topic := range assigned.Topics {
						count += len(topic.Partitions)
					}
				}
				found = append(found, count)
			}
		}
		sort.Ints(found)
		return fmt.Sprint(found)
	}
	first := joins(server, group, "franz-go-group", options...)
	until(ctx, func() bool { return shares() == "[4]" })
	second := joins(server, group, "franz-go-group", options...)
	until(ctx, func() bool { return shares() == "[2 2]" })
	check(first.client.CommitMarkedOffsets(ctx))
	first.leaves()
	until(ctx, func() bool { return shares() == "[4]" })
	until(ctx, func() bool {
		check(second.client.CommitMarkedOffsets(ctx))
		committed, _ := must(admin.FetchOffsets(ctx, group)).Lookup("franz-go-group", 3)
		return committed.At == end
	})
	second.leaves()
	lag := must(admin.Lag(ctx, group))[group]
	state := lag.State
	if group == "franz-modern" {
		state = must(admin.DescribeConsumerGroups(ctx, group))[group].State
	}
	equal(state, "Empty")
	equal(lag.Lag.Total(), 0)
}

func franzStatic(ctx context.Context, server string) {
	group := "franz-static"
	member := joins(server, group, "franz-go-group", kgo.InstanceID("one"))
	generation := func() int32 { _, found := member.client.GroupMetadata(); return found }
	admin := kadm.NewClient(franz(server))
	defer admin.Close()
	stable := func() bool {
		found := must(admin.DescribeGroups(ctx, group))[group]
		return found.State == "Stable" && len(found.Members) == 1 && *found.Members[0].InstanceID == "one"
	}
	until(ctx, func() bool { return generation() > 0 && stable() })
	before := generation()
	id, _ := member.client.GroupMetadata()
	member.leaves()
	equal(stable(), true)
	member = joins(server, group, "franz-go-group", kgo.InstanceID("one"))
	until(ctx, func() bool { return generation() > 0 })
	again, _ := member.client.GroupMetadata()
	equal([]any{generation(), again != id}, []any{before, true})
	member.leaves()
	check(must(admin.LeaveGroup(ctx, kadm.LeaveGroup(group).InstanceIDs("one"))).Error())
}

func franzShare(ctx context.Context, server string) {
	producer := franz(server, kgo.DefaultProduceTopic("franz-go-shared"))
	for n := range 10 {
		check(producer.ProduceSync(ctx, &kgo.Record{Value: []byte(fmt.Sprint(n))}).FirstErr())
	}
	producer.Close()
	consumer := franz(server, kgo.ShareGroup("franz-share"), kgo.ConsumeTopics("franz-go-shared"))
	found := map[string]bool{}
	for _, r := range franzReads(ctx, consumer, 10) {
		found[string(r.Value)] = true
		r.Ack(kgo.AckAccept)
	}
	equal(len(found), 10)
	consumer.Close()
}

func franzTransactions(ctx context.Context, server string) {
	producer := franz(server, kgo.TransactionalID("franz"), kgo.DefaultProduceTopic("franz-go-transactions"))
	for n, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		check(producer.BeginTransaction())
		for range 3 {
			check(producer.ProduceSync(ctx, &kgo.Record{Value: []byte(fmt.Sprint(n))}).FirstErr())
		}
		check(producer.EndTransaction(ctx, end))
	}
	producer.Close()
	committed := kgo.FetchIsolationLevel(kgo.ReadCommitted())
	equal(franzValues(ctx, server, "franz-go-transactions", 6, committed), []string{"0", "0", "0", "2", "2", "2"})
	equal(franzValues(ctx, server, "franz-go-transactions", 9), []string{"0", "0", "0", "1", "1", "1", "2", "2", "2"})
	admin := kadm.NewClient(franz(server))
	defer admin.Close()
	equal(must(admin.DescribeTransactions(ctx, "franz"))["franz"].State, "CompleteCommit")
}

// franzExactlyOnce copies records with the offsets that it has read, aborts the first try and reads them again.
func franzExactlyOnce(ctx context.Context, server string) {
	session := must(kgo.NewGroupTransactSession(kgo.SeedBrokers(server), kgo.TransactionalID("franz-copies"),
		kgo.ConsumerGroup("franz-copies"), kgo.ConsumeTopics("franz-go-codecs"), kgo.DefaultProduceTopic("franz-go-copies"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets()))
	copied := 0
	for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		for last := int64(-1); last < int64(len(all()))-1; {
			fetches := session.PollFetches(ctx)
			check(fetches.Err())
			check(session.Begin())
			for _, r := range fetches.Records() {
				last = r.Offset
				check(session.ProduceSync(ctx, &kgo.Record{Value: r.Value}).FirstErr())
				copied++
			}
			equal(must(session.End(ctx, end)), end == kgo.TryCommit)
			if end == kgo.TryAbort {
				break
			}
		}
	}
	session.Close()
	equal(copied > len(all()), true)
	var expected []string
	for _, r := range all() {
		expected = append(expected, r.value)
	}
	equal(franzValues(ctx, server, "franz-go-copies", len(all()), kgo.FetchIsolationLevel(kgo.ReadCommitted())), expected)
}

func franzDeletion(ctx context.Context, server string) {
	admin := kadm.NewClient(franz(server))
	defer admin.Close()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: "franz-go-large", Partition: 0, At: 2, LeaderEpoch: -1})
	equal(must(admin.DeleteRecords(ctx, offsets))["franz-go-large"][0].LowWatermark, 2)
	equal(must(admin.ListStartOffsets(ctx, "franz-go-large"))["franz-go-large"][0].Offset, 2)
	check(must(admin.DeleteGroup(ctx, "franz-classic")).Err)
	check(must(admin.DeleteTopic(ctx, "franz-go-large")).Err)
	equal(must(admin.ListTopics(ctx)).Has("franz-go-large"), false)
}
