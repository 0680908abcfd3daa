//! User and device files: the groups of this process, and which device files they let it use. None is opened.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::{ReadError, Sysfs};
use crate::file;

/// A group that we are in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its number.
    pub id: u32,
    /// Its name, where `/etc/group` has one.
    pub name: Option<String>,
}

/// The user of this process, from `/proc/self/status`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User {
    /// The effective user number, if known.
    pub uid: Option<u32>,
    /// The effective group and the supplementary ones.
    pub groups: Vec<Group>,
}

/// What may be done with a device file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// It may be read and written.
    Usable,
    /// It is there, and not for us.
    Denied,
}

/// A device file that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFile {
    /// Its path on the machine, `/dev/kfd`.
    pub path: PathBuf,
    /// Whether we may use it.
    pub access: Access,
    /// Permission bits.
    pub mode: u32,
    /// The group that owns it.
    pub group: Group,
}

impl Sysfs {
    /// Who we are, as far as `/proc/self/status` tells.
    pub fn user(&self, problems: &mut Vec<ReadError>) -> User {
        let Some(status) = file::optional(file::read(&self.path("proc/self/status")), problems) else {
            return User::default();
        };
        let numbers = |key: &str| -> Vec<u32> {
            status
                .lines()
                .find_map(|line| line.strip_prefix(key))
                .map(|values| {
                    values
                        .split_whitespace()
                        .filter_map(|value| value.parse().ok())
                        .collect()
                })
                .unwrap_or_default()
        };
        // Each of the first two lines lists the real, effective, saved and file system number.
        let uid = numbers("Uid:").get(1).copied();
        let mut ids: Vec<u32> = numbers("Gid:")
            .get(1)
            .copied()
            .into_iter()
            .chain(numbers("Groups:"))
            .collect();
        ids.sort_unstable();
        ids.dedup();
        User {
            uid,
            groups: ids
                .into_iter()
                .map(|id| Group {
                    id,
                    name: self.group_name(id),
                })
                .collect(),
        }
    }

    fn group_name(&self, id: u32) -> Option<String> {
        let groups = file::read(&self.path("etc/group")).ok()?;
        groups.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)?.parse::<u32>().ok()? == id).then(|| name.to_owned())
        })
    }

    /// A device file by its path without the first slash (`dev/kfd`), or `None` if it is not there.
    pub fn device_file(&self, relative: &str, user: &User) -> Option<DeviceFile> {
        let path = self.path(relative);
        let metadata = std::fs::metadata(&path).ok()?;
        let usable = if self.is_host() {
            // The kernel's own answer, which knows of the access lists that a login gives to the seat's user.
            use rustix::fs::Access as Mode;
            rustix::fs::access(&path, Mode::READ_OK.union(Mode::WRITE_OK)).is_ok()
        } else {
            permitted(metadata.mode(), metadata.uid(), metadata.gid(), user)
        };
        Some(DeviceFile {
            path: PathBuf::from("/").join(relative),
            access: if usable { Access::Usable } else { Access::Denied },
            mode: metadata.mode() & 0o7777,
            group: Group {
                id: metadata.gid(),
                name: self.group_name(metadata.gid()),
            },
        })
    }
}

/// Whether the permission bits let `user` read and write.
fn permitted(mode: u32, owner: u32, group: u32, user: &User) -> bool {
    let bits = match user.uid {
        Some(0) => return true,
        Some(uid) if uid == owner => mode >> 6,
        _ if user.groups.iter().any(|member| member.id == group) => mode >> 3,
        _ => mode,
    };
    bits & 0o6 == 0o6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_matching_class_of_bits_decides() {
        let user = User {
            uid: Some(7),
            groups: vec![Group { id: 9, name: None }],
        };
        assert!(permitted(0o600, 7, 1, &user));
        assert!(
            !permitted(0o066, 7, 9, &user),
            "an owner without rights is not helped by others' rights"
        );
        assert!(permitted(0o060, 1, 9, &user));
        assert!(!permitted(0o040, 1, 9, &user), "reading alone is not enough");
        assert!(permitted(0o006, 1, 1, &user));
        assert!(!permitted(0o660, 1, 1, &user));
        assert!(permitted(
            0o000,
            1,
            1,
            &User {
                uid: Some(0),
                groups: vec![]
            }
        ));
        assert!(!permitted(0o660, 1, 1, &User::default()));
    }
}
