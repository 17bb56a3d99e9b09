//! Certificates compressed for clients that take it (RFC 8879), by the compressors that answers have too.
//!
//! The library asks once for each certificate and remembers what came of it. Next: `tls`, which offers them.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use rustls::CertificateCompressionAlgorithm;
use rustls::compress::{CertCompressor, CompressionFailed, CompressionLevel};
use std::io::Write;

/// Those that are offered, the one that makes less of it first.
pub(super) const ALL: [&dyn CertCompressor; 2] = [&Brotli, &Zlib];

#[derive(Debug)]
struct Brotli;

impl CertCompressor for Brotli {
    fn compress(&self, input: Vec<u8>, level: CompressionLevel) -> Result<Vec<u8>, CompressionFailed> {
        let quality = match level {
            CompressionLevel::Interactive => 4,
            CompressionLevel::Amortized => 11,
        };
        let params = brotli::enc::BrotliEncoderParams { quality, lgwin: 16, ..Default::default() };
        let mut compressed = Vec::with_capacity(input.len());
        match brotli::BrotliCompress(&mut &input[..], &mut compressed, &params) {
            Ok(_) => Ok(compressed),
            Err(_) => Err(CompressionFailed),
        }
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        CertificateCompressionAlgorithm::Brotli
    }
}

#[derive(Debug)]
struct Zlib;

impl CertCompressor for Zlib {
    fn compress(&self, input: Vec<u8>, level: CompressionLevel) -> Result<Vec<u8>, CompressionFailed> {
        let effort = match level {
            CompressionLevel::Interactive => Compression::fast(),
            CompressionLevel::Amortized => Compression::best(),
        };
        let mut encoder = ZlibEncoder::new(Vec::with_capacity(input.len()), effort);
        encoder.write_all(&input).and_then(|()| encoder.finish()).map_err(|_| CompressionFailed)
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        CertificateCompressionAlgorithm::Zlib
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn what_is_compressed_is_smaller_and_comes_out_as_it_was() {
        let certificate: Vec<u8> = b"a certificate says much twice ".repeat(40);
        for level in [CompressionLevel::Interactive, CompressionLevel::Amortized] {
            let [brotli, zlib] = ALL.map(|one| one.compress(certificate.clone(), level).expect("compressed"));
            let mut opened = Vec::new();
            brotli::BrotliDecompress(&mut &brotli[..], &mut opened).expect("brotli");
            assert!(opened == certificate && brotli.len() < certificate.len());
            let mut opened = Vec::new();
            flate2::read::ZlibDecoder::new(&zlib[..]).read_to_end(&mut opened).expect("zlib");
            assert!(opened == certificate && zlib.len() < certificate.len());
        }
    }
}
