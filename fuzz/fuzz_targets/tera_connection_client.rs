#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| worldwire_fuzz::run("tera_connection_client", data));
