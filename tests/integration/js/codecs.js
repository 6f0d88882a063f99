// Codecs that KafkaJS has not: what it compresses is an encoder with a buffer.
const { CompressionTypes, CompressionCodecs } = require('kafkajs')
const snappy = require('kafkajs-snappy')
const lz4 = require('lz4js')
const xxh32 = require('lz4js/xxh32')
const zstd = require('@bokuweb/zstd-wasm')

// lz4js says of its frames that their blocks depend on one another, which Kafka's reader refuses; with one block none does.
const compressed = (data) => {
  const frame = Buffer.from(lz4.compress(data))
  frame[4] |= 0x20
  frame[6] = (xxh32.hash(0, frame, 4, 2) >> 8) & 0xff
  return frame
}

exports.install = async () => {
  await zstd.init()
  CompressionCodecs[CompressionTypes.Snappy] = snappy
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: async (encoder) => compressed(encoder.buffer),
    decompress: async (buffer) => Buffer.from(lz4.decompress(buffer)),
  })
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async (encoder) => Buffer.from(zstd.compress(encoder.buffer)),
    decompress: async (buffer) => Buffer.from(zstd.decompress(buffer)),
  })
}

exports.kinds = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}
