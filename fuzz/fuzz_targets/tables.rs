//! See `tables` in `src/lib.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bellwether_fuzz::tables(data));
