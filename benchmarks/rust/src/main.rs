//! Measures rust-rdkafka, which is librdkafka without Python.
//!
//!     peers produce|consume HOST:PORT TOPIC CODEC RECORDS
//!
//! does and prints what benchmarks/live_clients.py describes.

use std::env;
use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};

// The same as in benchmarks/live_clients.py.
const VALUE_BYTES: usize = 100;
const LINGER_MS: &str = "5";
const PARTITION_FETCH_BYTES: &str = "4194304";
const PATIENCE: Duration = Duration::from_secs(60);

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [work, server, topic, codec, count] = arguments.as_slice() else {
        panic!("peers produce|consume HOST:PORT TOPIC CODEC RECORDS");
    };
    let count = count.parse().expect("a number of records");
    match work.as_str() {
        "produce" => produce(server, topic, codec, count),
        "consume" => consume(server, topic, count),
        _ => panic!("unknown work: {work}"),
    }
}

struct Stopwatch {
    processor: Duration,
    wall: Instant,
}

impl Stopwatch {
    fn start() -> Self {
        Self {
            processor: processor_time(),
            wall: Instant::now(),
        }
    }

    /// Print the number of records and the seconds: the processor's and the clock's.
    fn stop(&self, records: usize) {
        let (processor, wall) = (processor_time() - self.processor, self.wall.elapsed());
        println!(
            "{records} {} {}",
            processor.as_secs_f64(),
            wall.as_secs_f64()
        );
    }
}

/// The processor time of all threads of this process.
fn processor_time() -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is valid for the duration of the call.
    assert_eq!(
        unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut now) },
        0
    );
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[derive(Default)]
struct Delivered(AtomicUsize);

impl ClientContext for Delivered {}

impl ProducerContext for Delivered {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            panic!("{error}");
        }
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn produce(server: &str, topic: &str, codec: &str, count: usize) {
    let producer: BaseProducer<Delivered> = ClientConfig::new()
        .set("bootstrap.servers", server)
        .set("compression.type", codec)
        .set("linger.ms", LINGER_MS)
        .set("queue.buffering.max.messages", "2000000")
        .create_with_context(Delivered::default())
        .expect("a producer");
    let value = some_value();
    producer
        .send(BaseRecord::<(), [u8]>::to(topic).payload(&[]))
        .expect("room for a record");
    producer
        .flush(PATIENCE)
        .expect("the first record to be delivered");
    let watch = Stopwatch::start();
    for i in 0..count {
        let key = format!("k{i:09}");
        producer
            .send(BaseRecord::to(topic).key(&key).payload(&value))
            .expect("room for a record");
    }
    producer
        .flush(PATIENCE)
        .expect("all records to be delivered");
    watch.stop(count);
    assert_eq!(producer.context().0.load(Ordering::Relaxed), count + 1);
}

/// Digits that do not compress well.
fn some_value() -> Vec<u8> {
    let mut half = [0; VALUE_BYTES / 2];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut half))
        .expect("random bytes");
    half.iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>()
        .into_bytes()
}

fn consume(server: &str, topic: &str, count: usize) {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", server)
        .set("group.id", "unused")
        .set("enable.auto.commit", "false")
        .set("check.crcs", "true")
        .set("fetch.message.max.bytes", PARTITION_FETCH_BYTES)
        .set("queued.max.messages.kbytes", "131072")
        .set("queued.min.messages", "1000000")
        .set("fetch.queue.backoff.ms", "10")
        .create()
        .expect("a consumer");
    let mut place = TopicPartitionList::new();
    place
        .add_partition_offset(topic, 0, Offset::Beginning)
        .expect("a place");
    consumer.assign(&place).expect("an assignment");
    next_size(&consumer);
    let watch = Stopwatch::start();
    let total: usize = (1..count).map(|_| next_size(&consumer)).sum();
    watch.stop(count - 1);
    assert!(total >= (count - 1) * VALUE_BYTES);
}

/// The bytes of the next record's value.
fn next_size(consumer: &BaseConsumer) -> usize {
    let message = consumer
        .poll(PATIENCE)
        .expect("a record within a minute")
        .expect("a record");
    message.payload().map_or(0, <[u8]>::len)
}
