// Uses a broker through KafkaJS: `node main.js SERVER` prints the name of each part when it has passed, and ends with
// status 1 at the first that has not. The topic "ours" has the records of `written`, which another client wrote;
// "kafkajs-codecs" gets the same from here.
const assert = require('node:assert')
const { randomFillSync } = require('node:crypto')
const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ConfigResourceTypes, Kafka, logLevel } = require('kafkajs')
const codecs = require('./codecs')

const FIRST_TIME = 1_700_000_000_000
const PER_CODEC = 20
const SOON = 60_000

const kafka = new Kafka({ clientId: 'kafkajs', brokers: [process.argv[2]], logLevel: logLevel.NOTHING })

const written = (codec) =>
  Array.from({ length: PER_CODEC }, (_, n) => ({
    key: `k${n}`,
    value: `${codec} ${n}`,
    headers: { codec },
    timestamp: String(FIRST_TIME + n),
  }))

const all = () => Object.keys(codecs.kinds).flatMap(written)

const until = async (holds) => {
  const end = Date.now() + SOON
  while (!(await holds())) {
    assert(Date.now() < end, `that does not come about: ${holds}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

const using = async (client, use) => {
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.disconnect()
  }
}

const admin = (use) => using(kafka.admin(), use)

// What a group of its own reads of a topic, from an offset on where one is given.
let readers = 0
const reads = (topic, count, { from, ...options } = {}) =>
  using(kafka.consumer({ groupId: `kafkajs-reader-${readers++}`, maxWaitTimeInMs: 100, ...options }), async (consumer) => {
    const found = []
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({ eachMessage: async ({ message }) => void found.push(message) })
    if (from !== undefined) consumer.seek({ topic, partition: 0, offset: from })
    await until(() => found.length >= count)
    assert.equal(found.length, count)
    return found
  })

const values = async (...asked) => (await reads(...asked)).map((message) => message.value.toString())

const parts = {
  admin: () =>
    admin(async (client) => {
      const configEntries = [{ name: 'max.message.bytes', value: '8388608' }]
      const partitions = { codecs: 1, large: 1, group: 3, transactions: 1, copies: 1 }
      const topics = Object.entries(partitions).map(([name, numPartitions]) => ({
        topic: `kafkajs-${name}`, numPartitions, replicationFactor: 1, configEntries,
      }))
      assert.equal(await client.createTopics({ topics }), true)
      assert.equal(await client.createTopics({ topics }), false)
      await client.createPartitions({ topicPartitions: [{ topic: 'kafkajs-group', count: 4 }] })
      const metadata = await client.fetchTopicMetadata({ topics: ['kafkajs-group'] })
      assert.equal(metadata.topics[0].partitions.length, 4)
      const resource = { type: ConfigResourceTypes.TOPIC, name: 'kafkajs-large' }
      const wanted = [...configEntries, { name: 'retention.ms', value: '60000' }]
      await client.alterConfigs({ validateOnly: false, resources: [{ ...resource, configEntries: wanted }] })
      const described = await client.describeConfigs({ includeSynonyms: false, resources: [resource] })
      const found = Object.fromEntries(described.resources[0].configEntries.map((each) => [each.configName, each.configValue]))
      for (const { name, value } of wanted) assert.equal(found[name], value)
      const cluster = await client.describeCluster()
      assert.deepEqual([cluster.brokers.length, cluster.controller], [1, cluster.brokers[0].nodeId])
      const entry = {
        resourceType: AclResourceTypes.TOPIC, resourceName: 'kafkajs', resourcePatternType: 3, principal: 'User:a', host: '*',
        operation: AclOperationTypes.READ, permissionType: AclPermissionTypes.ALLOW,
      }
      await assert.rejects(client.createAcls({ acl: [entry] }), { type: 'SECURITY_DISABLED' })
    }),

  codecs: async () => {
    for (const [codec, compression] of Object.entries(codecs.kinds)) {
      await using(kafka.producer(), (producer) => producer.send({ topic: 'kafkajs-codecs', compression, messages: written(codec) }))
    }
    for (const topic of ['ours', 'kafkajs-codecs']) {
      const found = await reads(topic, all().length)
      assert.deepEqual(
        found.map(({ key, value, headers, timestamp }) => ({
          key: key.toString(), value: value.toString(), headers: { codec: headers.codec.toString() }, timestamp,
        })),
        all()
      )
      assert.deepEqual(found.map(({ offset }) => Number(offset)), [...all().keys()])
    }
  },

  'seek by timestamp': () =>
    admin(async (client) => {
      const [{ offset }] = await client.fetchTopicOffsetsByTimestamp('kafkajs-codecs', FIRST_TIME + 7)
      assert.equal(offset, '7')
      const [{ low, high }] = await client.fetchTopicOffsets('kafkajs-codecs')
      assert.deepEqual([low, high], ['0', String(all().length)])
    }),

  'large messages': async () => {
    const large = Array.from({ length: 3 }, (_, n) => randomFillSync(Buffer.alloc(5_000_000 + n)))
    await using(kafka.producer(), async (producer) => {
      for (const value of large) await producer.send({ topic: 'kafkajs-large', messages: [{ value }] })
    })
    const found = await reads('kafkajs-large', large.length, { maxBytesPerPartition: 1 << 20 })
    for (const [n, { value }] of found.entries()) assert(value.equals(large[n]))
  },

  group: async () => {
    const topic = 'kafkajs-group'
    const joins = async () => {
      const member = kafka.consumer({ groupId: 'kafkajs', heartbeatInterval: 100, maxWaitTimeInMs: 100 })
      Object.assign(member, { owned: 0, count: 0 })
      member.on(member.events.GROUP_JOIN, ({ payload }) => (member.owned = (payload.memberAssignment[topic] || []).length))
      await member.connect()
      await member.subscribe({ topic, fromBeginning: true })
      await member.run({ eachMessage: async () => void member.count++ })
      return member
    }
    await using(kafka.producer(), async (producer) => {
      const write = () => producer.send({ topic, messages: Array.from({ length: 40 }, (_, n) => ({ value: `${n}`, partition: n % 4 })) })
      await write()
      const first = await joins()
      await until(() => first.owned === 4 && first.count === 40)
      const second = await joins()
      await until(() => first.owned === 2 && second.owned === 2)
      await write()
      await until(() => first.count === 60 && second.count === 20)
      await first.disconnect()
      await until(() => second.owned === 4)
      await write()
      await until(() => second.count === 60)
      await admin(async (client) => {
        const { groups } = await client.describeGroups(['kafkajs'])
        assert.deepEqual([groups[0].state, groups[0].members.length], ['Stable', 1])
      })
      await second.disconnect()
    })
    await admin(async (client) => {
      const [{ partitions }] = await client.fetchOffsets({ groupId: 'kafkajs', topics: [topic] })
      assert.deepEqual(partitions.map(({ offset }) => offset), ['30', '30', '30', '30'])
    })
  },

  transactions: async () => {
    const options = { transactionalId: 'kafkajs', idempotent: true, maxInFlightRequests: 1 }
    await using(kafka.producer(options), async (producer) => {
      for (const [n, end] of ['commit', 'abort', 'commit'].entries()) {
        const transaction = await producer.transaction()
        for (let i = 0; i < 3; i++) await transaction.send({ topic: 'kafkajs-transactions', messages: [{ value: `${n}` }] })
        await transaction[end]()
      }
    })
    assert.deepEqual(await values('kafkajs-transactions', 6), ['0', '0', '0', '2', '2', '2'])
    assert.equal((await values('kafkajs-transactions', 9, { readUncommitted: true })).length, 9)
  },

  // Copies with the offsets up to which was read; of two tries one is aborted.
  'exactly once': async () => {
    const found = await reads('kafkajs-codecs', all().length)
    const read = { consumerGroupId: 'kafkajs-copies', topics: [{ topic: 'kafkajs-codecs', partitions: [{ partition: 0, offset: `${found.length}` }] }] }
    const committed = () =>
      admin(async (client) => (await client.fetchOffsets({ groupId: 'kafkajs-copies', topics: ['kafkajs-codecs'] }))[0].partitions[0].offset)
    const options = { transactionalId: 'kafkajs-copies', idempotent: true, maxInFlightRequests: 1 }
    await using(kafka.producer(options), async (producer) => {
      for (const [end, offset] of [['abort', '-1'], ['commit', `${found.length}`]]) {
        const transaction = await producer.transaction()
        await transaction.send({ topic: 'kafkajs-copies', messages: found.map(({ value }) => ({ value })) })
        await transaction.sendOffsets(read)
        await transaction[end]()
        await until(async () => (await committed()) === offset)
      }
    })
    assert.deepEqual(await values('kafkajs-copies', found.length), all().map(({ value }) => value))
  },

  deletion: () =>
    admin(async (client) => {
      assert.equal((await client.fetchTopicOffsets('kafkajs-large'))[0].low, '0') // deleteTopicRecords itself asks for no metadata
      await client.deleteTopicRecords({ topic: 'kafkajs-large', partitions: [{ partition: 0, offset: '2' }] })
      assert.equal((await client.fetchTopicOffsets('kafkajs-large'))[0].low, '2')
      await client.deleteGroups(['kafkajs'])
      assert(!(await client.listGroups()).groups.some(({ groupId }) => groupId === 'kafkajs'))
      await client.deleteTopics({ topics: ['kafkajs-large'] })
      assert(!(await client.listTopics()).includes('kafkajs-large'))
    }),
}

const main = async () => {
  await codecs.install()
  for (const [name, run] of Object.entries(parts)) {
    await run()
    console.log(name)
  }
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error)
    process.exit(1)
  }
)
