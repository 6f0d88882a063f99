package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

var saramaParts = []part{
	{"admin", saramaAdmin},
	{"codecs", saramaCodecs},
	{"seek by timestamp", saramaSeek},
	{"large messages", saramaLarge},
	{"group", saramaGroup},
	{"static members", saramaStatic},
	{"transactions", saramaTransactions},
	{"exactly once", saramaExactlyOnce},
	{"deletion", saramaDeletion},
}

func saramaConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.MaxMessageBytes = 8 << 20
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Heartbeat.Interval = 100 * time.Millisecond
	return config
}

func withAdmin(server string, use func(sarama.ClusterAdmin)) {
	admin := must(sarama.NewClusterAdmin([]string{server}, saramaConfig()))
	defer func() { check(admin.Close()) }()
	use(admin)
}

func saramaReads(ctx context.Context, server, topic string, offset int64, count int, config *sarama.Config) []*sarama.ConsumerMessage {
	consumer := must(sarama.NewConsumer([]string{server}, config))
	partition := must(consumer.ConsumePartition(topic, 0, offset))
	var found []*sarama.ConsumerMessage
	for len(found) < count {
		select {
		case message := <-partition.Messages():
			found = append(found, message)
		case <-ctx.Done():
			panic(ctx.Err())
		}
	}
	check(partition.Close())
	check(consumer.Close())
	return found
}

func saramaAdmin(ctx context.Context, server string) {
	withAdmin(server, func(admin sarama.ClusterAdmin) {
		size, time := "8388608", "60000"
		for topic, partitions := range map[string]int32{
			"sarama-codecs": 1, "sarama-large": 1, "sarama-group": 3, "sarama-transactions": 1, "sarama-copies": 1,
		} {
			detail := &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: map[string]*string{"max.message.bytes": &size}}
			check(admin.CreateTopic(topic, detail, false))
		}
		equal(errors.Is(admin.CreateTopic("ours", &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false), sarama.ErrTopicAlreadyExists), true)
		check(admin.CreatePartitions("sarama-group", 4, nil, false))
		equal(must(admin.ListTopics())["sarama-group"].NumPartitions, 4)
		change := map[string]sarama.IncrementalAlterConfigsEntry{"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &time}}
		check(admin.IncrementalAlterConfig(sarama.TopicResource, "sarama-large", change, false))
		found := map[string]string{}
		for _, entry := range must(admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: "sarama-large"})) {
			found[entry.Name] = entry.Value
		}
		equal([]string{found["retention.ms"], found["max.message.bytes"]}, []string{time, size})
		brokers, controller, err := admin.DescribeCluster()
		check(err)
		equal([]any{len(brokers), brokers[0].ID()}, []any{1, controller})
		equal(len(must(admin.DescribeLogDirs([]int32{controller}))[controller]), 1)
		user := sarama.AlterUserScramCredentialsUpsert{
			Name: "sarama", Mechanism: sarama.SCRAM_MECHANISM_SHA_512, Iterations: 4096, Salt: []byte("salt"), Password: []byte("secret"),
		}
		equal(must(admin.UpsertUserScramCredentials([]sarama.AlterUserScramCredentialsUpsert{user}))[0].ErrorCode, sarama.ErrNoError)
		equal(must(admin.DescribeUserScramCredentials([]string{"sarama"}))[0].CredentialInfos[0].Iterations, 4096)
		entity := []sarama.QuotaEntityComponent{{EntityType: sarama.QuotaEntityClientID, MatchType: sarama.QuotaMatchExact, Name: "sarama-client"}}
		operation := sarama.ClientQuotasOp{Key: "producer_byte_rate", Value: 1e6}
		check(admin.AlterClientQuotas(entity, operation, false))
		filter := []sarama.QuotaFilterComponent{{EntityType: sarama.QuotaEntityClientID, MatchType: sarama.QuotaMatchExact, Match: "sarama-client"}}
		equal(must(admin.DescribeClientQuotas(filter, true))[0].Values["producer_byte_rate"], 1e6)
	})
}

func saramaCodecs(ctx context.Context, server string) {
	kinds := map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
		"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}
	for _, codec := range codecs {
		config := saramaConfig()
		config.Producer.Compression = kinds[codec]
		config.Producer.Flush.Messages = perCodec
		producer := must(sarama.NewSyncProducer([]string{server}, config))
		var messages []*sarama.ProducerMessage
		for _, r := range written(codec) {
			messages = append(messages, &sarama.ProducerMessage{
				Topic: "sarama-codecs", Key: sarama.StringEncoder(r.key), Value: sarama.StringEncoder(r.value), Timestamp: time.UnixMilli(r.millis),
				Headers: []sarama.RecordHeader{{Key: []byte(r.headerKey), Value: []byte(r.headerValue)}},
			})
		}
		check(producer.SendMessages(messages))
		check(producer.Close())
	}
	for _, topic := range []string{"ours", "sarama-codecs"} {
		var found []record
		for n, message := range saramaReads(ctx, server, topic, sarama.OffsetOldest, len(all()), saramaConfig()) {
			equal(message.Offset, n)
			header := message.Headers[0]
			found = append(found, record{string(message.Key), string(message.Value), string(header.Key), string(header.Value), message.Timestamp.UnixMilli()})
		}
		equal(found, all())
	}
}

func saramaSeek(ctx context.Context, server string) {
	client := must(sarama.NewClient([]string{server}, saramaConfig()))
	at := must(client.GetOffset("sarama-codecs", 0, firstTime+7))
	equal([]int64{at, must(client.GetOffset("sarama-codecs", 0, sarama.OffsetNewest))}, []int{7, len(all())})
	check(client.Close())
	equal(saramaReads(ctx, server, "sarama-codecs", at, 1, saramaConfig())[0].Offset, 7)
}

func saramaLarge(ctx context.Context, server string) {
	producer := must(sarama.NewSyncProducer([]string{server}, saramaConfig()))
	for _, value := range large() {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: "sarama-large", Value: sarama.ByteEncoder(value)})
		check(err)
	}
	check(producer.Close())
	for n, message := range saramaReads(ctx, server, "sarama-large", 0, len(large()), saramaConfig()) {
		equal(string(message.Value) == string(large()[n]), true)
	}
}

// saramaMember consumes as a member of a group, commits what it has read, and knows its generation.
type saramaMember struct {
	group      sarama.ConsumerGroup
	stop       context.CancelFunc
	ended      chan struct{}
	count      atomic.Int64
	owned      atomic.Int64
	generation atomic.Int64
}

func (member *saramaMember) Setup(session sarama.ConsumerGroupSession) error {
	count := 0
	for _, partitions := range session.Claims() {
		count += len(partitions)
	}
	member.owned.Store(int64(count))
	member.generation.Store(int64(session.GenerationID()))
	return nil
}

func (member *saramaMember) Cleanup(session sarama.ConsumerGroupSession) error {
	session.Commit()
	return nil
}

func (member *saramaMember) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "read")
		member.count.Add(1)
	}
	return nil
}

func saramaJoins(server, group, instance string) *saramaMember {
	config := saramaConfig()
	config.Consumer.Group.InstanceId = instance
	consuming, stop := context.WithCancel(context.Background())
	member := &saramaMember{group: must(sarama.NewConsumerGroup([]string{server}, group, config)), stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(member.ended)
		for consuming.Err() == nil {
			if err := member.group.Consume(consuming, []string{"sarama-group"}, member); err != nil && consuming.Err() == nil {
				panic(err)
			}
		}
	}()
	return member
}

func (member *saramaMember) leaves() {
	member.stop()
	<-member.ended
	check(member.group.Close())
}

func saramaGroup(ctx context.Context, server string) {
	producer := must(sarama.NewSyncProducer([]string{server}, saramaConfig()))
	write := func() {
		var messages []*sarama.ProducerMessage
		for n := range 40 {
			messages = append(messages, &sarama.ProducerMessage{Topic: "sarama-group", Partition: int32(n % 4), Value: sarama.StringEncoder(fmt.Sprint(n))})
		}
		check(producer.SendMessages(messages))
	}
	write()
	first := saramaJoins(server, "sarama", "")
	until(ctx, func() bool { return first.owned.Load() == 4 && first.count.Load() == 40 })
	second := saramaJoins(server, "sarama", "")
	until(ctx, func() bool { return first.owned.Load() == 2 && second.owned.Load() == 2 })
	write()
	until(ctx, func() bool { return first.count.Load() == 60 && second.count.Load() == 20 })
	withAdmin(server, func(admin sarama.ClusterAdmin) {
		described := must(admin.DescribeConsumerGroups([]string{"sarama"}))[0]
		var shares []int
		for _, member := range described.Members {
			shares = append(shares, len(must(member.GetMemberAssignment()).Topics["sarama-group"]))
		}
		sort.Ints(shares)
		equal([]any{described.State, shares}, []any{"Stable", []int{2, 2}})
	})
	first.leaves()
	until(ctx, func() bool { return second.owned.Load() == 4 })
	write()
	until(ctx, func() bool { return second.count.Load() == 60 })
	second.leaves()
	check(producer.Close())
	withAdmin(server, func(admin sarama.ClusterAdmin) {
		equal(must(admin.ListConsumerGroups())["sarama"], "consumer")
		committed := must(admin.ListConsumerGroupOffsets("sarama", map[string][]int32{"sarama-group": {0, 1, 2, 3}}))
		for partition := range int32(4) {
			block := committed.GetBlock("sarama-group", partition)
			equal([]any{block.Offset, block.Metadata}, []any{30, "read"})
		}
	})
}

func saramaStatic(ctx context.Context, server string) {
	member := saramaJoins(server, "sarama-static", "one")
	until(ctx, func() bool { return member.owned.Load() == 4 })
	before := member.generation.Load()
	member.leaves()
	member = saramaJoins(server, "sarama-static", "one")
	until(ctx, func() bool { return member.owned.Load() == 4 })
	equal(member.generation.Load(), before)
	member.leaves()
	withAdmin(server, func(admin sarama.ClusterAdmin) {
		equal(must(admin.RemoveMemberFromConsumerGroup("sarama-static", []string{"one"})).Members[0].Err, sarama.ErrNoError)
	})
}

func saramaTransactional(server, id string) sarama.SyncProducer {
	config := saramaConfig()
	config.Producer.Idempotent = true
	config.Producer.Transaction.ID = id
	config.Net.MaxOpenRequests = 1
	return must(sarama.NewSyncProducer([]string{server}, config))
}

func saramaValues(ctx context.Context, server, topic string, count int) []string {
	config := saramaConfig()
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	var found []string
	for _, message := range saramaReads(ctx, server, topic, sarama.OffsetOldest, count, config) {
		found = append(found, string(message.Value))
	}
	return found
}

func saramaTransactions(ctx context.Context, server string) {
	producer := saramaTransactional(server, "sarama")
	for n, end := range []func() error{producer.CommitTxn, producer.AbortTxn, producer.CommitTxn} {
		check(producer.BeginTxn())
		for range 3 {
			_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: "sarama-transactions", Value: sarama.StringEncoder(fmt.Sprint(n))})
			check(err)
		}
		check(end())
	}
	check(producer.Close())
	equal(saramaValues(ctx, server, "sarama-transactions", 6), []string{"0", "0", "0", "2", "2", "2"})
	equal(len(saramaReads(ctx, server, "sarama-transactions", sarama.OffsetOldest, 9, saramaConfig())), 9)
}

// saramaExactlyOnce sends copies of records with the offsets up to which it has read; of the two tries one is aborted.
func saramaExactlyOnce(ctx context.Context, server string) {
	producer := saramaTransactional(server, "sarama-copies")
	read := saramaReads(ctx, server, "sarama-codecs", sarama.OffsetOldest, len(all()), saramaConfig())
	for _, end := range []func() error{producer.AbortTxn, producer.CommitTxn} {
		check(producer.BeginTxn())
		for _, message := range read {
			_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: "sarama-copies", Value: sarama.ByteEncoder(message.Value)})
			check(err)
		}
		check(producer.AddMessageToTxn(read[len(read)-1], "sarama-copies", nil))
		check(end())
		withAdmin(server, func(admin sarama.ClusterAdmin) {
			committed := must(admin.ListConsumerGroupOffsets("sarama-copies", map[string][]int32{"sarama-codecs": {0}}))
			found := committed.GetBlock("sarama-codecs", 0).Offset
			equal(found == int64(len(all())) || found == -1, true)
		})
	}
	check(producer.Close())
	var expected []string
	for _, r := range all() {
		expected = append(expected, r.value)
	}
	equal(saramaValues(ctx, server, "sarama-copies", len(all())), expected)
	withAdmin(server, func(admin sarama.ClusterAdmin) {
		committed := must(admin.ListConsumerGroupOffsets("sarama-copies", map[string][]int32{"sarama-codecs": {0}}))
		equal(committed.GetBlock("sarama-codecs", 0).Offset, len(all()))
	})
}

func saramaDeletion(ctx context.Context, server string) {
	withAdmin(server, func(admin sarama.ClusterAdmin) {
		check(admin.DeleteRecords("sarama-large", map[int32]int64{0: 2}))
		asked := map[string]map[int32]int64{"sarama-large": {0: sarama.OffsetOldest}}
		equal(must(admin.ListOffsets(asked, nil))["sarama-large"][0].Offset, 2)
		check(admin.DeleteConsumerGroupOffset("sarama", "sarama-group", 0))
		check(admin.DeleteConsumerGroup("sarama"))
		check(admin.DeleteTopic("sarama-large"))
		_, there := must(admin.ListTopics())["sarama-large"]
		equal(there, false)
	})
}
