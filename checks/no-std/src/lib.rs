//! Proof that the protocols need no standard library: this has its own panic handler and allocator,
//! and one of each is all there may be.

#![no_std]

extern crate alloc;

use core::{
    alloc::{GlobalAlloc, Layout},
    panic::PanicInfo,
    ptr,
};

use bellwether_proto::{
    Boot, Duration, Election, Input, Machine, NodeId, Outbox, Peer, Seed, Time,
    election::announce::{Announce, Config, Rules, Suppression},
};

struct Nothing;

// SAFETY: hands out nothing, which the contract allows.
unsafe impl GlobalAlloc for Nothing {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Nothing = Nothing;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// Uses a machine, so that its code is really linked.
#[unsafe(no_mangle)]
pub extern "C" fn elect() -> bool {
    let second = Duration::from_secs(1);
    let Ok(config) = Config::new(second, Some(second * 3), Suppression::None, Rules::Hardened)
    else {
        return false;
    };
    let me = Peer::new(NodeId::new(1), Boot::new(1));
    let mut node = Announce::new(me, config, Seed::new(1), None);
    let mut out = Outbox::new();
    node.handle(Time::ZERO, Input::Start, &mut out).is_ok() && node.leadership().leader.is_some()
}
