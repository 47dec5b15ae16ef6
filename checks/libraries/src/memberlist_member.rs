//! memberlist, the Rust one, over UDP and TCP.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use memberlist::{
    Memberlist, Options,
    net::NetTransportOptions,
    proto::MaybeResolvedAddress,
    tokio::{TokioNetTransport, TokioSocketAddrResolver, TokioTcp},
};

use crate::{Alive, Library, MEMBERS, Waits, address, place};

pub(crate) fn library(waits: Waits, only_datagrams: bool) -> Library {
    // It has a multiple of the period times a logarithm instead of a wait; one is the least there is.
    let options = Options::lan()
        .with_probe_interval(waits.period)
        .with_probe_timeout(waits.ack)
        .with_suspicion_mult(1)
        .with_suspicion_max_timeout_mult(1)
        .with_disable_reliable_pings(only_datagrams);
    let suspicion = waits.period.mul_f64((MEMBERS as f64).log10());
    let member =
        move |place, alive| -> crate::Life { Box::pin(live(place, alive, options.clone())) };
    Library {
        name: "memberlist",
        settings: format!(
            "`Options::lan()`, suspicion_mult 1: {} ms of suspicion; {}; not encrypted",
            suspicion.as_millis(),
            if only_datagrams { "disable_reliable_pings" } else { "pings over TCP too" }
        ),
        member: Arc::new(member),
    }
}

async fn live(own: usize, alive: Alive, options: Options) {
    type List = Memberlist<TokioNetTransport<u64, TokioSocketAddrResolver, TokioTcp>>;
    let mut transport =
        NetTransportOptions::<u64, TokioSocketAddrResolver, TokioTcp>::new(own as u64);
    transport.add_bind_address(address(own));
    let list: List = List::new(transport, options).await.expect("its address is free");
    let seed = MaybeResolvedAddress::<SocketAddr, SocketAddr>::resolved(address(0));
    while own > 0 && list.join(seed).await.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    loop {
        let there = list.online_members().await;
        alive.set(there.iter().map(|member| place(*member.address())));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
