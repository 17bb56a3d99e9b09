//! Streams that give their encoders up are read whole, and what all of them hold stays within its bound.

use super::*;
use crate::fixture::{admitted, worker};
use std::io::Read;

const LATER: Duration = Duration::from_secs(2);

fn effort(coding: Coding, level: u32, window: &str) -> Effort {
    let levels = format!("gzip_comp_level {level}; brotli_comp_level {level}; zstd_comp_level {level};");
    let site = format!("server {{ listen 80; {levels} brotli_window {window}; }}");
    let request = admitted(&worker(&site), "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    Effort::of(&request.location().settings, coding, None)
}

fn read(coding: Coding, bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut text = Vec::new();
    let read = match coding {
        // One member, as some clients read no second one.
        Coding::Gzip => flate2::read::GzDecoder::new(bytes).read_to_end(&mut text),
        Coding::Br => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut text),
        Coding::Zstd => {
            zstd::stream::read::Decoder::new(bytes).and_then(|mut body| body.read_to_end(&mut text))
        }
    };
    (text, read.is_ok())
}

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

fn text(length: usize) -> Vec<u8> {
    let mut numbers = Numbers(7);
    let mut text = Vec::new();
    while text.len() < length {
        let word = numbers.below(300) * 2_654_435_761;
        text.extend_from_slice(format!("word{word:x} {} ", numbers.below(256)).as_bytes());
    }
    text.truncate(length);
    text
}

fn stream(account: &'static EncoderAccount, effort: Effort) -> Compressor {
    Compressor::new(effort, account.take(effort.memory(false), clock::now()).expect("there is room"))
}

fn has_encoder(stream: &Compressor) -> bool {
    locked(&stream.coder).encoder.is_some()
}

fn held(account: &EncoderAccount) -> usize {
    account.held.load(Ordering::Relaxed)
}

#[test]
fn a_stream_that_gives_its_encoder_up_anywhere_is_read_whole_in_every_coding() {
    static ACCOUNT: EncoderAccount = EncoderAccount::new(64 << 20);
    let text = text(600_000);
    let mut numbers = Numbers(1);
    for coding in Coding::ALL {
        for (level, window) in [(1, "1k"), (1, "64k"), (2, "128k"), (5, "512k"), (6, "16k"), (9, "4m")] {
            for round in 0..5 {
                let effort = effort(coding, level, window);
                let (mut stream, mut out, mut at) = (stream(&ACCOUNT, effort), Vec::new(), 0);
                while at < text.len() {
                    let length = [1, 2, 3, 500, 16_384, 70_000, 200_000][numbers.below(7) as usize];
                    let piece = &text[at..text.len().min(at + length)];
                    // In some rounds from the beginning, so that no encoder comes first.
                    let rest = (numbers.below(3) == 0 || round == 0)
                        .then(|| ACCOUNT.take_free(ACCOUNT.most - held(&ACCOUNT)));
                    stream.compress(piece, &mut out);
                    drop(rest);
                    at += piece.len();
                    match numbers.below(4) {
                        0 => locked(&stream.coder).release(),
                        1 => stream.flush(&mut out),
                        2 => {
                            locked(&stream.coder).release();
                            stream.flush(&mut out);
                            assert!(read(coding, &out).0 == text[..at], "{coding:?} {level} {window} {at}");
                        }
                        _ => {}
                    }
                }
                assert!(stream.finish(&mut out));
                assert_eq!(stream.totals(), (text.len() as u64, out.len() as u64));
                assert!(read(coding, &out) == (text.clone(), true), "{coding:?} {level} {window} {round}");
                drop(stream);
                assert_eq!(held(&ACCOUNT), 0, "all is given back");
            }
        }
    }
}

#[test]
fn a_stream_without_content_and_without_memory_is_whole() {
    for coding in Coding::ALL {
        for window in ["1k", "64k", "128k", "16m"] {
            let account: &'static EncoderAccount = Box::leak(Box::new(EncoderAccount::new(64 << 20)));
            let (mut stream, mut out) = (stream(account, effort(coding, 5, window)), Vec::new());
            locked(&stream.coder).release();
            let _rest = account.take_free(account.most - held(account));
            assert!(stream.finish(&mut out) && !out.is_empty());
            assert_eq!(read(coding, &out), (Vec::new(), true), "{coding:?} {window}");
        }
    }
}

#[test]
fn those_that_stall_longest_give_their_encoders_up_for_one_that_needs_the_memory_and_no_others_do() {
    for coding in Coding::ALL {
        let effort = effort(coding, 5, "512k");
        // With a little for what is left.
        let room = effort.memory(false) * 3 + (128 << 10);
        let account: &'static EncoderAccount = Box::leak(Box::new(EncoderAccount::new(room)));
        let (content, mut outs) = (text(100_000), [Vec::new(), Vec::new(), Vec::new()]);
        let mut streams = [(); 3].map(|()| stream(account, effort));
        for (stream, out) in streams.iter_mut().zip(&mut outs) {
            stream.compress(&content[..50_000], out);
        }
        assert!(account.take(effort.memory(false), clock::now()).is_none(), "all are at work");
        assert!(streams.iter().all(has_encoder));
        // The second one works on.
        locked(&streams[1].coder).used += LATER;
        let newcomer = account.take(effort.memory(false), clock::now() + LATER).expect("two have stalled");
        assert_eq!(streams.each_ref().map(has_encoder), [false, true, true], "{coding:?}");
        assert!(held(account) <= room);
        // There is no encoder for it now, and one again later.
        streams[0].compress(&content[50_000..60_000], &mut outs[0]);
        assert!(!has_encoder(&streams[0]));
        drop(newcomer);
        for (stream, out) in streams.iter_mut().zip(&mut outs) {
            let (given, _) = stream.totals();
            stream.compress(&content[given as usize..], out);
            assert!(has_encoder(stream), "{coding:?}");
            assert!(stream.finish(out));
            assert!(read(coding, out) == (content.clone(), true), "{coding:?}");
        }
    }
}

#[test]
fn what_a_stream_has_left_counts_until_it_is_given_out() {
    static ACCOUNT: EncoderAccount = EncoderAccount::new(64 << 20);
    let mut numbers = Numbers(3);
    let noise: Vec<u8> = (0..400_000).map(|_| numbers.below(256) as u8).collect();
    let (mut stream, mut out) = (stream(&ACCOUNT, effort(Coding::Br, 5, "4m")), Vec::new());
    stream.compress(&noise, &mut out);
    locked(&stream.coder).release();
    let left = locked(&stream.coder).left.capacity();
    assert!(left > 100_000, "{left}");
    assert_eq!(held(&ACCOUNT), left);
    assert!(stream.finish(&mut out));
    assert_eq!((held(&ACCOUNT), locked(&stream.coder).left.capacity()), (0, 0));
    assert!(read(Coding::Br, &out) == (noise, true));
}
