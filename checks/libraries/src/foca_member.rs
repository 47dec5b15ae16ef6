//! foca, with as much of a host around it as it takes: a socket and timers.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use foca::{AccumulatingRuntime, Config, Foca, Identity, PostcardCodec, Timer};
use rand::{SeedableRng as _, rngs::StdRng};
use serde::{Deserialize, Serialize};
use tokio::{
    net::UdpSocket,
    time::{Instant, sleep_until},
};

use crate::{Alive, Library, MEMBERS, Waits, address, place};

/// foca's own example of an identity, without what it takes to come back.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Id(std::net::SocketAddr);

impl Identity for Id {
    type Addr = std::net::SocketAddr;

    fn addr(&self) -> Self::Addr {
        self.0
    }

    fn renew(&self) -> Option<Self> {
        None
    }

    fn win_addr_conflict(&self, _: &Self) -> bool {
        false
    }
}

pub(crate) const fn simple() -> Config {
    Config::simple()
}

pub(crate) fn lan() -> Config {
    Config::new_lan(NonZeroU32::new(MEMBERS as u32).expect("not zero"))
}

pub(crate) fn library(waits: Waits, mut config: Config, based_on: &str) -> Library {
    config.probe_period = waits.period;
    config.probe_rtt = waits.ack;
    config.suspect_to_down_after = waits.suspicion;
    let member =
        move |place, alive| -> crate::Life { Box::pin(live(place, alive, config.clone())) };
    Library {
        name: "foca",
        settings: format!("`{based_on}`; not encrypted"),
        member: Arc::new(member),
    }
}

async fn live(own: usize, alive: Alive, config: Config) {
    let socket = UdpSocket::bind(address(own)).await.expect("its address is free");
    let mut buffer = vec![0; config.max_packet_size.get()];
    let rng = StdRng::seed_from_u64(own as u64);
    let mut foca = Foca::new(Id(address(own)), config, rng, PostcardCodec);
    let mut runtime = AccumulatingRuntime::new();
    let mut timers: Vec<(Instant, Timer<Id>)> = Vec::new();
    let mut knock = Instant::now();
    loop {
        // Until somebody answers: the first member may not be there yet.
        let is_alone = own > 0 && foca.num_members() == 0;
        if is_alone && Instant::now() >= knock {
            let _ = foca.announce(Id(address(0)), &mut runtime);
            knock = Instant::now() + Duration::from_millis(200);
        }
        while let Some((to, data)) = runtime.to_send() {
            let _ = socket.send_to(&data, to.0).await;
        }
        let now = Instant::now();
        while let Some((after, timer)) = runtime.to_schedule() {
            timers.push((now + after, timer));
        }
        while runtime.to_notify().is_some() {}
        // Itself included, as the others have it.
        alive.set(foca.iter_members().map(|member| place(member.id().0)).chain([own]));
        let wake = if is_alone { knock } else { now + Duration::from_secs(60) };
        let next = timers.iter().map(|&(at, _)| at).min().map_or(wake, |due| due.min(wake));
        // What it does with what it cannot use is its own business; it goes on.
        tokio::select! {
            received = socket.recv(&mut buffer) => if let Ok(length) = received {
                let _ = foca.handle_data(&buffer[..length], &mut runtime);
            },
            () = sleep_until(next) => {
                if let Some(due) = timers.iter().position(|&(at, _)| at == next) {
                    let (_, timer) = timers.swap_remove(due);
                    let _ = foca.handle_timer(timer, &mut runtime);
                }
            }
        }
    }
}
