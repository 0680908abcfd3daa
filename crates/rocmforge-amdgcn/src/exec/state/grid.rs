//! Resources of global wave sync: what waves of all workgroups of a cooperative launch meet at.

/// What a wave waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket {
    pub(crate) resource: u8,
    /// The round of the barrier that it has arrived in; `None`: a semaphore.
    pub(crate) round: Option<u64>,
}

/// A counter, and what is known of the waves at it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Resource {
    pub(crate) counter: u32,
    /// Rounds of its barrier that are over.
    pub(crate) rounds: u64,
    /// Waves that wait at it.
    pub(crate) waiting: u32,
    /// What the waves that arrived in the last such round had released, as racecheck knows it.
    pub(crate) released: (u32, u32),
}

/// Resources that a number in an instruction can name.
pub(crate) const RESOURCES: usize = 64;

/// The resources of a launch.
#[derive(Default)]
pub(crate) struct Gws {
    /// By number; `None` where the launch is not cooperative.
    pub(crate) resources: Option<Box<[Resource; RESOURCES]>>,
}

impl Gws {
    /// Those of a cooperative launch of so many workgroups.
    pub(crate) fn of_grid(groups: u64) -> Self {
        let counter = u32::try_from(groups.saturating_sub(1)).unwrap_or(u32::MAX);
        let mut resources = Box::new([Resource::default(); RESOURCES]);
        resources[0].counter = counter;
        Self {
            resources: Some(resources),
        }
    }

    /// What a resource says of those who wait in vain at it.
    pub(crate) fn missing(&self, ticket: Ticket) -> String {
        let resource = self
            .resources
            .as_ref()
            .and_then(|all| all.get(usize::from(ticket.resource)));
        let number = ticket.resource;
        match (ticket.round, resource) {
            (Some(_), Some(resource)) => format!(
                "waits at barrier {number} of the whole grid, where {} waves have arrived and {} never come",
                resource.waiting,
                u64::from(resource.counter) + 1
            ),
            _ => format!("waits at semaphore {number} of the whole grid, which nobody raises"),
        }
    }
}
