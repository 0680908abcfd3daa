//! Users of a card: the processes that KFD counts memory for, or that have its device files open.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{DrmCard, KfdNode, Sysfs};
use crate::{Bytes, file};

/// A process that uses a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardUser {
    /// Its number.
    pub process: u32,
    /// Its name, where it can be read.
    pub name: Option<String>,
    /// VRAM that KFD counts for it on the card; `None` where KFD does not know it.
    pub vram: Option<Bytes>,
    /// Which of the card's device files it has open: `/dev/dri/renderD128`. `/dev/kfd` is every card's.
    pub files: Vec<PathBuf>,
}

impl Sysfs {
    /// The processes that KFD knows, living or not yet torn down, by number. `None` inside a process name space: KFD numbers
    /// processes as the machine does.
    pub fn kfd_processes(&self) -> Option<Vec<u32>> {
        if !self.has_the_machines_processes() {
            return None;
        }
        let mut processes: Vec<u32> = file::names(&self.path("sys/class/kfd/kfd/proc"), &mut Vec::new())
            .into_iter()
            .filter_map(|name| name.parse().ok())
            .collect();
        processes.sort_unstable();
        Some(processes)
    }

    /// Every process that uses a card, as far as this user may see: by KFD's count, and by open device files. This process
    /// is left out.
    pub fn users_of(&self, card: &DrmCard, node: Option<&KfdNode>) -> Vec<CardUser> {
        let render = card
            .render_node
            .as_ref()
            .map(|node| PathBuf::from("/dev/dri").join(node));
        let ours = [render, Some(PathBuf::from("/dev/dri").join(&card.name))];
        let ours: Vec<PathBuf> = ours.into_iter().flatten().collect();
        let open = self.users_of_files(&ours).into_iter();
        let mut users: BTreeMap<u32, CardUser> = open.map(|user| (user.process, user)).collect();
        if let Some(node) = node {
            for process in self.kfd_processes().unwrap_or_default() {
                // 0 bytes: it uses another card.
                let vram = self.process_vram(process, node.gpu_id).filter(|vram| vram.0 > 0);
                if vram.is_some() {
                    users.entry(process).or_insert_with(|| self.card_user(process)).vram = vram;
                }
            }
        }
        users.remove(&std::process::id());
        users.into_values().collect()
    }

    /// Every process that has one of these device files open, as far as this user may see. This process is left out.
    pub fn users_of_files(&self, device_files: &[PathBuf]) -> Vec<CardUser> {
        let mut users = Vec::new();
        for process in self
            .process_numbers()
            .into_iter()
            .filter(|&id| id != std::process::id())
        {
            let folder = self.path(&format!("proc/{process}/fd"));
            let mut files: Vec<PathBuf> = file::names(&folder, &mut Vec::new())
                .into_iter()
                .filter_map(|descriptor| file::link(&folder.join(descriptor)).ok())
                .filter(|target| device_files.contains(target))
                .collect();
            files.sort();
            files.dedup();
            if !files.is_empty() {
                let user = self.card_user(process);
                users.push(CardUser { files, ..user });
            }
        }
        users.sort_by_key(|user| user.process);
        users
    }

    fn card_user(&self, process: u32) -> CardUser {
        CardUser {
            process,
            name: file::read(&self.path(&format!("proc/{process}/comm"))).ok(),
            vram: None,
            files: Vec::new(),
        }
    }

    /// The numbers of all processes.
    pub(crate) fn process_numbers(&self) -> Vec<u32> {
        // Not by `file::names`: a machine may have more processes than any folder of interest has entries.
        std::fs::read_dir(self.path("proc"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect()
    }
}
