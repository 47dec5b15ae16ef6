//! See `node_file` in `src/lib.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bellwether_fuzz::node_file(data));
