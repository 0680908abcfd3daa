//! Options of `rocmforge serve` for events of the cache, which the feature `kv-events` adds.

use clap::Args as Arguments;
use rocmforge::models::Engine;

use crate::failure::Failure;

/// Where events of the cache go.
#[derive(Arguments, Clone, Debug)]
pub(crate) struct Options {
    #[cfg(feature = "kv-events")]
    #[command(flatten)]
    addresses: with::Addresses,
}

/// Sockets that events go to, if they are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    #[cfg(feature = "kv-events")]
    sockets: Option<rocmforge_server::kv_events::KvEvents>,
}

impl Options {
    /// Opens the sockets that are asked for. `has_keys` and `allow_without_keys` are options of the server, `named` how many models
    /// the command names, `model` the name of the first.
    pub(crate) fn start(
        &self,
        has_keys: bool,
        allow_without_keys: bool,
        named: usize,
        model: &str,
    ) -> Result<Events, Failure> {
        #[cfg(feature = "kv-events")]
        return self.addresses.start(has_keys, allow_without_keys, named, model);
        #[cfg(not(feature = "kv-events"))]
        {
            let _ = (has_keys, allow_without_keys, named, model);
            Ok(Events::default())
        }
    }
}

impl Events {
    /// Sends an engine's events.
    pub(crate) fn follow<B: rocmforge::ggml::HostAccess>(&self, engine: &mut Engine<B>) {
        #[cfg(feature = "kv-events")]
        if let Some(sockets) = &self.sockets {
            engine.listen_to_cache(sockets.listener());
        }
        #[cfg(not(feature = "kv-events"))]
        let _ = engine;
    }
}

#[cfg(feature = "kv-events")]
mod with {
    use std::net::SocketAddr;

    use clap::Args as Arguments;
    use rocmforge_server::kv_events::{KvEventOptions, KvEvents};

    use super::{Events, Failure};

    #[derive(Arguments, Clone, Debug)]
    pub(super) struct Addresses {
        /// Publishes what is in the model's cache at this address, such as `tcp://127.0.0.1:5557`, by ZeroMQ in the format of vLLM. It has the tokens of
        /// prompts, and whoever reaches it can read them.
        #[arg(long, value_name = "ADDRESS", value_parser = address)]
        kv_events: Option<SocketAddr>,
        /// Repeats events that a subscriber has missed at this address.
        #[arg(long, value_name = "ADDRESS", value_parser = address, requires = "kv_events")]
        kv_events_replay: Option<SocketAddr>,
        /// First part of each message; `kv@rocmforge@MODEL` without it.
        #[arg(long, value_name = "TEXT", requires = "kv_events")]
        kv_events_topic: Option<String>,
    }

    /// An address as ZeroMQ writes it.
    fn address(text: &str) -> Result<SocketAddr, String> {
        let address = text.strip_prefix("tcp://").and_then(|rest| rest.parse().ok());
        address.ok_or_else(|| "an address is written as tcp://127.0.0.1:5557, with an IP address".to_owned())
    }

    impl Addresses {
        pub(super) fn start(
            &self,
            has_keys: bool,
            allow_without_keys: bool,
            named: usize,
            model: &str,
        ) -> Result<Events, Failure> {
            let Some(listen) = self.kv_events else {
                return Ok(Events::default());
            };
            if named != 1 {
                return Err(format!("--kv-events is for one model, and {named} are named: name one with -m").into());
            }
            if has_keys {
                return Err(
                    "--kv-events with --keys would send nothing: what the owner of a key asks is never published"
                        .into(),
                );
            }
            for address in [Some(listen), self.kv_events_replay].into_iter().flatten() {
                if !address.ip().is_loopback() && !allow_without_keys {
                    return Err(format!(
                        "tcp://{address} can be reached by other machines, which would read the tokens of prompts: take tcp://127.0.0.1:{}, or add --allow-without-keys",
                        address.port()
                    )
                    .into());
                }
            }
            let topic = self.kv_events_topic.clone();
            let sockets = KvEvents::start(&KvEventOptions {
                listen,
                replay: self.kv_events_replay,
                topic: topic.unwrap_or_else(|| format!("kv@rocmforge@{model}")),
            })?;
            eprintln!("events of the cache are at tcp://{}", sockets.listen());
            if let Some(replay) = sockets.replay() {
                eprintln!("they are repeated at tcp://{replay}");
            }
            Ok(Events { sockets: Some(sockets) })
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn what_would_leak_or_do_nothing_is_refused() {
            let options = |address: &str| Addresses {
                kv_events: Some(super::address(address).expect("an address")),
                kv_events_replay: None,
                kv_events_topic: None,
            };
            let refused = |keys, open, named, address| {
                let refused = options(address).start(keys, open, named, "tiny");
                refused.expect_err("refused").to_string()
            };
            let local = "tcp://127.0.0.1:0";
            assert!(refused(false, false, 0, local).contains("one model"));
            assert!(refused(true, false, 1, local).contains("--keys"));
            assert!(refused(false, false, 1, "tcp://0.0.0.0:0").contains("--allow-without-keys"));
            assert!(options(local).start(false, false, 1, "tiny").is_ok());
            assert!(options("tcp://[::1]:0").start(false, false, 1, "tiny").is_ok());
            for wrong in [
                "127.0.0.1:5557",
                "tcp://*:5557",
                "tcp://host:1",
                "ipc://file",
                "tcp://127.0.0.1:99999",
            ] {
                assert!(super::address(wrong).is_err(), "{wrong}");
            }
        }
    }
}
