//! The multicast group: what is said to everybody on the local link, and on which links.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4},
};

use rustix::net::{self, netdevice, sockopt};
use tokio::net::UdpSocket;

use super::BindError;

/// A group we hear and speak to.
#[derive(Debug)]
pub(super) struct Group {
    /// What is sent to everybody arrives here: a socket bound to one of our addresses would not hear it.
    socket: UdpSocket,
    address: SocketAddrV4,
    /// Interfaces by name, and the number each had last. None means the one of our address.
    interfaces: Vec<(String, u32)>,
}

impl Group {
    pub(super) fn join(
        udp: &UdpSocket,
        local: IpAddr,
        address: SocketAddrV4,
        interfaces: &[String],
    ) -> Result<Self, BindError> {
        let failed = |source| BindError { address: address.into(), protocol: "multicast", source };
        let socket = listen(udp, local, address, interfaces.is_empty()).map_err(failed)?;
        let mut group = Self { socket, address, interfaces: Vec::new() };
        for name in interfaces {
            let named = |error: io::Error| {
                let text = format!("interface {name:?}: {error}");
                failed(io::Error::new(error.kind(), text))
            };
            let index = group.add(name).map_err(named)?;
            group.interfaces.push((name.clone(), index));
        }
        Ok(group)
    }

    pub(super) const fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    pub(super) const fn address(&self) -> SocketAddr {
        SocketAddr::V4(self.address)
    }

    /// On how many links everything is said.
    pub(super) fn ways(&self) -> usize {
        self.interfaces.len().max(1)
    }

    /// Lets `udp` speak on this link next. An interface that was taken away and has come back, as radios do, has another
    /// number, and nobody listens there yet.
    pub(super) fn choose(&mut self, udp: &UdpSocket, way: usize) -> io::Result<()> {
        let Some((name, known)) = self.interfaces.get(way) else { return Ok(()) };
        let index = netdevice::name_to_index(udp, name)?;
        if index != *known {
            self.interfaces[way].1 = self.add(&name.clone())?;
        }
        let any = Ipv4Addr::UNSPECIFIED;
        Ok(sockopt::set_ip_multicast_if_with_ifindex(udp, &any, &any, index)?)
    }

    /// Listens on an interface.
    fn add(&self, name: &str) -> io::Result<u32> {
        let index = netdevice::name_to_index(&self.socket, name)?;
        let any = Ipv4Addr::UNSPECIFIED;
        sockopt::set_ip_add_membership_with_ifindex(&self.socket, self.address.ip(), &any, index)?;
        Ok(index)
    }
}

fn listen(
    udp: &UdpSocket,
    local: IpAddr,
    group: SocketAddrV4,
    by_address: bool,
) -> io::Result<UdpSocket> {
    let IpAddr::V4(interface) = local else { return Err(io::ErrorKind::Unsupported.into()) };
    let socket = net::socket_with(
        net::AddressFamily::INET,
        net::SocketType::DGRAM,
        net::SocketFlags::CLOEXEC | net::SocketFlags::NONBLOCK,
        None,
    )?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    net::bind(&socket, &group)?;
    // The kernel's default, but what is local must not depend on it.
    sockopt::set_ip_multicast_ttl(udp, 1)?;
    if by_address {
        sockopt::set_ip_add_membership(&socket, group.ip(), &interface)?;
        if !interface.is_unspecified() {
            sockopt::set_ip_multicast_if(udp, &interface)?;
        }
    }
    UdpSocket::from_std(std::net::UdpSocket::from(socket))
}
