//! Uevents: the kernel's messages about devices, which any user may receive.
//!
//! ```
//! use rocmforge_machine::uevents::Uevents;
//!
//! // A container may not let us.
//! if let Ok(events) = Uevents::listen() {
//!     for event in events {
//!         println!("{:?} {:?}", event.value("ACTION"), event.value("DEVPATH"));
//!     }
//! }
//! ```

use rustix::io::ioctl_fionbio;
use rustix::net::netlink::{KOBJECT_UEVENT, SocketAddrNetlink};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

/// The longest event: the kernel's own buffer for one is 2 KiB.
const LONGEST: usize = 8192;
/// The kernel's own messages; group 2 has udev's.
const KERNEL_GROUP: u32 = 1;

/// A socket on which events arrive.
#[derive(Debug)]
pub struct Uevents {
    socket: File,
}

/// One event: `KEY=value` pairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uevent {
    pairs: Vec<(String, String)>,
}

impl Uevents {
    /// Listens to the kernel.
    ///
    /// # Errors
    ///
    /// Where the kernel does not let us, as in a container.
    pub fn listen() -> io::Result<Self> {
        let (family, kind) = (AddressFamily::NETLINK, SocketType::DGRAM);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, Some(KOBJECT_UEVENT))?;
        bind(&socket, &SocketAddrNetlink::new(0, KERNEL_GROUP))?;
        Self::from_socket(socket)
    }

    /// Listens to a socket that delivers an event a datagram.
    ///
    /// # Errors
    ///
    /// Where the socket cannot be made one that does not wait.
    pub fn from_socket(socket: OwnedFd) -> io::Result<Self> {
        ioctl_fionbio(&socket, true)?;
        Ok(Self {
            socket: File::from(socket),
        })
    }
}

impl Iterator for Uevents {
    type Item = Uevent;

    /// The next event that has arrived, without waiting for one: after `None` there may be more. Whatever goes wrong, there
    /// is none: events are one source of several.
    fn next(&mut self) -> Option<Uevent> {
        let mut bytes = [0; LONGEST];
        let length = self.socket.read(&mut bytes).ok()?;
        Some(Uevent::parse(&bytes[..length]))
    }
}

impl Uevent {
    /// `action@path`, then `KEY=value`, each ended by a zero byte.
    fn parse(bytes: &[u8]) -> Self {
        let pairs = String::from_utf8_lossy(bytes);
        let pairs = pairs.split('\0').filter_map(|pair| pair.split_once('='));
        Self {
            pairs: pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        }
    }

    /// The value of a key, `ACTION` say.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.pairs
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// Whether the event is about the device at a PCI address, or something that belongs to it.
    pub fn is_of(&self, pci: &str) -> bool {
        let mut parts = self.value("DEVPATH").unwrap_or_default().split('/');
        parts.any(|part| part.eq_ignore_ascii_case(pci))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_its_pairs() {
        let event = Uevent::parse(b"change@/devices/x\0ACTION=change\0DEVPATH=/devices/x\0A=b=c\0\0\xff");
        assert_eq!(event.value("ACTION"), Some("change"));
        assert_eq!(event.value("A"), Some("b=c"));
        assert_eq!(event.value("change@/devices/x"), None);
        assert!(event.is_of("X") && !event.is_of("devices/x"));
        assert_eq!(Uevent::parse(b"").pairs, []);
    }

    #[test]
    fn the_kernels_own_events_are_listened_to_without_waiting() {
        // A container may not let us: then there is nothing to look at.
        let Ok(mut events) = Uevents::listen() else { return };
        let _ = events.next();
        // sk, protocol, port, groups, ..., inode
        let inode = rustix::fs::fstat(&events.socket).unwrap().st_ino.to_string();
        let listed = || {
            let sockets = std::fs::read_to_string("/proc/net/netlink").unwrap();
            let mut sockets = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let socket = sockets.find(|fields| fields.last() == Some(&inode.as_str()))?;
            Some((socket[1].to_owned(), socket[3].to_owned()))
        };
        // A line can be missed while other processes open and close such sockets.
        let socket = std::iter::repeat_with(listed).take(100).flatten().next();
        assert_eq!(socket, Some(("15".to_owned(), "00000001".to_owned())));
    }
}
