//! Containment: what holds the processes of a test together and away from the supervisor.
//!
//! The best that the machine allows of a [control group](super::cgroup), [namespaces](super::namespaces), and scans of `/proc`.

use super::cgroup::{RunCgroup, TestCgroup};
use super::namespaces::{ChildEnds, Keeper, Namespaces};
use std::io;
use std::process::Command;

/// Ways to contain a test, the best first. What each promises is in docs/testing.md.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// A control group, and namespaces of users, mounts and processes.
    CgroupPidNamespace,
    /// A control group, and namespaces of users and mounts: the numbers of processes are the machine's.
    CgroupUserNamespace,
    /// Namespaces of users, mounts and processes.
    PidNamespace,
    /// A control group.
    Cgroup,
    /// Scans of `/proc`.
    #[default]
    Scans,
}

impl Kind {
    const ALL: [Self; 5] = [
        Self::CgroupPidNamespace,
        Self::CgroupUserNamespace,
        Self::PidNamespace,
        Self::Cgroup,
        Self::Scans,
    ];

    /// The best for tests on a real card, whose driver knows processes by the machine's numbers, or on a simulated one.
    pub(crate) fn best_on(real_card: bool) -> Self {
        match real_card {
            true => Self::CgroupUserNamespace,
            false => Self::CgroupPidNamespace,
        }
    }

    /// Its name in reports.
    fn name(self) -> &'static str {
        match self {
            Self::CgroupPidNamespace => "cgroup+pid_namespace",
            Self::CgroupUserNamespace => "cgroup+user_namespace",
            Self::PidNamespace => "pid_namespace",
            Self::Cgroup => "cgroup",
            Self::Scans => "scans",
        }
    }

    /// All of it, or `None` where a part cannot be made.
    fn make(self) -> Option<Containment> {
        let group = match self {
            Self::CgroupPidNamespace | Self::CgroupUserNamespace | Self::Cgroup => Some(RunCgroup::make().ok()?),
            Self::PidNamespace | Self::Scans => None,
        };
        let namespaces = match self {
            Self::CgroupPidNamespace | Self::PidNamespace => Some(Namespaces::make(true)?),
            Self::CgroupUserNamespace => Some(Namespaces::make(false)?),
            Self::Cgroup | Self::Scans => None,
        };
        Some(Containment {
            kind: self,
            group,
            namespaces,
        })
    }
}

/// How a run contains its tests.
#[derive(Default)]
pub(crate) struct Containment {
    kind: Kind,
    group: Option<RunCgroup>,
    namespaces: Option<Namespaces>,
}

/// What contains one test. Without either, scans of `/proc` alone.
#[derive(Default)]
pub(crate) struct Contained {
    pub(crate) group: Option<TestCgroup>,
    /// Where the test has a namespace of processes.
    pub(crate) keeper: Option<Keeper>,
}

impl Containment {
    /// The best that works here and is no better than `most`.
    pub(crate) fn best(most: Kind) -> Self {
        let kinds = Kind::ALL.into_iter().skip_while(|&kind| kind != most);
        kinds.filter_map(Kind::make).next().unwrap_or_default()
    }

    /// Its name in reports.
    pub(crate) fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// Prepares `command` so that its process begins contained. The second part is to be dropped when it has been started.
    pub(crate) fn contain(&self, command: &mut Command) -> io::Result<(Contained, Option<ChildEnds>)> {
        let group = self.group.as_ref().map(RunCgroup::test).transpose()?;
        if let Some(group) = &group {
            group.admit(command)?;
        }
        let entered = self.namespaces.as_ref().map(|namespaces| namespaces.enter(command));
        let (keeper, ends) = entered.transpose()?.flatten().unzip();
        Ok((Contained { group, keeper }, ends))
    }

    /// A process of the supervisor's own that is no test, if there is one.
    pub(crate) fn helper(&self) -> Option<u32> {
        self.group.as_ref().map(RunCgroup::guard)
    }
}
