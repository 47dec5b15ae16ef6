//! Whose files an agent relies on: those that nobody but root and its own user can change or exchange.

use std::{
    collections::VecDeque,
    fs::{self, Metadata},
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Component, Path, PathBuf},
};

use rustix::process::geteuid;

/// Why a file or directory is not relied on.
#[derive(Debug, thiserror::Error)]
pub enum Distrust {
    /// It cannot be looked at.
    #[error("{}: {source}", place.display())]
    Unseen {
        /// The file or directory.
        place: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is somebody else's.
    #[error("{} belongs to user {owner}, need root or user {own} (chown, or run this as its owner)", place.display())]
    Owner {
        /// The file or directory.
        place: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who we are.
        own: u32,
    },
    /// It is ours, and others may change it.
    #[error("{} may be changed by others: its mode is {mode:04o} (chmod go-w)", place.display())]
    Writable {
        /// The file or directory.
        place: PathBuf,
        /// Its permission bits, which let others write.
        mode: u32,
    },
}

/// Looks at a file or directory, not at where it is.
pub(crate) fn look(place: &Path, meta: &Metadata) -> Result<(), Distrust> {
    owned(place, meta)?;
    let mode = meta.permissions().mode() & 0o7777;
    // Where the sticky bit is set, others may add, and change only what is theirs.
    let sticky = meta.is_dir() && mode & 0o1000 != 0;
    match mode & 0o022 != 0 && !sticky {
        true => Err(Distrust::Writable { place: place.to_owned(), mode }),
        false => Ok(()),
    }
}

/// The same for what nobody else adds to either: the sticky bit is no excuse.
pub(crate) fn kept(place: &Path, meta: &Metadata) -> Result<(), Distrust> {
    owned(place, meta)?;
    let mode = meta.permissions().mode() & 0o7777;
    match mode & 0o022 != 0 {
        true => Err(Distrust::Writable { place: place.to_owned(), mode }),
        false => Ok(()),
    }
}

/// Whether it is root's or ours.
pub(crate) fn owned(place: &Path, meta: &Metadata) -> Result<(), Distrust> {
    let (owner, own) = (meta.uid(), geteuid().as_raw());
    match owner == 0 || owner == own {
        true => Ok(()),
        false => Err(Distrust::Owner { place: place.to_owned(), owner, own }),
    }
}

/// Looks at every component of an absolute path and of all that its links lead through: who may exchange one of them
/// decides what is found at the end.
pub(crate) fn walk(path: &Path) -> Result<(), Distrust> {
    let unseen = |place: &Path| {
        let place = place.to_owned();
        move |source| Distrust::Unseen { place, source }
    };
    let names = |path: &Path| -> VecDeque<PathBuf> {
        path.components().map(|part| PathBuf::from(part.as_os_str())).collect()
    };
    let (mut left, mut at, mut links) = (names(path), PathBuf::new(), 0);
    while let Some(name) = left.pop_front() {
        match name.components().next() {
            Some(Component::ParentDir) => {
                at.pop();
                continue;
            }
            Some(Component::CurDir) | None => continue,
            Some(_) => {}
        }
        let place = at.join(&name);
        let meta = fs::symlink_metadata(&place).map_err(unseen(&place))?;
        if !meta.is_symlink() {
            look(&place, &meta)?;
            at = place;
            continue;
        }
        // Anybody may have made it where anybody may add.
        owned(&place, &meta)?;
        links += 1;
        if links > LINKS {
            return Err(unseen(&place)(io::Error::other("too many links")));
        }
        let target = fs::read_link(&place).map_err(unseen(&place))?;
        let mut through = names(&target);
        through.append(&mut left);
        left = through;
    }
    Ok(())
}

/// As many as the kernel follows.
const LINKS: u32 = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, symlink};

    const NOBODY: Option<u32> = Some(65_534);

    #[test]
    fn every_component_counts_and_so_does_what_links_lead_through() {
        let folder = tempfile::tempdir().unwrap();
        let [inner, aside] = ["inner", "aside"].map(|name| folder.path().join(name));
        fs::create_dir(&inner).unwrap();
        fs::create_dir(&aside).unwrap();
        let program = inner.join("program");
        fs::write(&program, "").unwrap();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(&program, 0o755);
        // The folder in which this is, sticky, and not only ours.
        walk(&program).unwrap();
        for wrong in [0o757, 0o775, 0o777] {
            mode(&inner, wrong);
            let error = walk(&program).unwrap_err().to_string();
            let words = format!("{} may be changed by others", inner.display());
            assert!(error.starts_with(&words) && error.contains("chmod go-w"), "{error}");
        }
        mode(&inner, 0o1777);
        walk(&program).unwrap();
        mode(&inner, 0o755);
        symlink("../inner/program", aside.join("link")).unwrap();
        let there = folder.path().join("there");
        symlink(aside.join("link"), &there).unwrap();
        walk(&there).unwrap();
        mode(&aside, 0o777);
        let error = walk(&there).unwrap_err().to_string();
        assert!(error.contains("aside may be changed"), "{error}");
        mode(&aside, 0o755);
        symlink("round", folder.path().join("round")).unwrap();
        assert!(walk(&folder.path().join("round")).unwrap_err().to_string().contains("links"));
        assert!(walk(&inner.join("none")).unwrap_err().to_string().contains("none: No such"));
        if !geteuid().is_root() {
            return;
        }
        for place in [&program, &inner] {
            chown(place, NOBODY, None).unwrap();
            let error = walk(&program).unwrap_err().to_string();
            let words = format!("{} belongs to user 65534, need root", place.display());
            assert!(error.starts_with(&words), "{error}");
            chown(place, Some(0), None).unwrap();
        }
    }
}
