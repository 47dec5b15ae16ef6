//! See `seals` in `src/lib.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bellwether_fuzz::seals(data));
