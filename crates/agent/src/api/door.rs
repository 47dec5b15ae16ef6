//! The local door: a socket in the file system, for those on this machine.
//!
//! Its mode keeps others from so much as connecting, so that nobody can stand in the way of those who may. The kernel says
//! who connects: the user the agent runs as, and root, may ask for anything without a token; so may the members of
//! `socket_group`, whom the mode lets through. Whoever else gets here is told so.

use std::{
    env,
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::{
        fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
};

use rustix::{
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with},
    process::geteuid,
};

use crate::{
    config::{Config, Socket},
    trust,
};

/// A socket in the file system that nobody is served on yet.
#[derive(Debug)]
pub(crate) struct Door {
    listener: UnixListener,
    file: SocketFile,
    group: Option<u32>,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct Shut {
    path: PathBuf,
    why: String,
}

impl Shut {
    pub(crate) fn new(path: &Path, why: String) -> Self {
        Self { path: path.to_owned(), why }
    }
}

/// Removed at the end, unless somebody has put another in its place.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    number: Option<u64>,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.number.is_some() && number(&self.path) == self.number {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn number(path: &Path) -> Option<u64> {
    fs::symlink_metadata(path).ok().map(|meta| meta.ino())
}

impl Door {
    /// The one these settings ask for, of the agent that answers HTTP on this port.
    ///
    /// # Errors
    ///
    /// [`Shut`]: at the place they name, or the last of those where it is looked for.
    pub(crate) fn open(config: &Config, port: u16) -> Result<Option<Self>, Shut> {
        let group = config.socket_group.as_ref().map(|group| group.id);
        match &config.socket {
            Socket::Nowhere => Ok(None),
            Socket::At(path) => Self::at(path, group).map(Some),
            Socket::Usual => {
                // Where it is looked for; and where only those look who are told.
                let usual = usual_sockets(port).into_iter();
                let told = config.data_dir.iter().map(|folder| folder.join("agent.sock"));
                let mut shut = None;
                for path in usual.chain(told) {
                    make_folder(&path);
                    match Self::at(&path, group) {
                        Ok(door) => return Ok(Some(door)),
                        Err(why) => shut = Some(why),
                    }
                }
                shut.map_or(Ok(None), Err)
            }
        }
    }

    fn at(path: &Path, group: Option<u32>) -> Result<Self, Shut> {
        let shut = |why: String| Shut::new(path, why);
        let failed = |error: io::Error| shut(error.to_string());
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let meta = fs::metadata(folder).map_err(failed)?;
        trust::look(folder, &meta).map_err(|distrust| shut(distrust.to_string()))?;
        let address =
            SocketAddrUnix::new(path).map_err(|_| shut("is longer than 107 bytes".to_owned()))?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let socket = socket.map_err(|error| failed(error.into()))?;
        let mut bound = bind(&socket, &address);
        if bound == Err(Errno::ADDRINUSE) {
            clear(path).map_err(shut)?;
            bound = bind(&socket, &address);
        }
        bound.map_err(|error| failed(error.into()))?;
        let file = SocketFile { path: path.to_owned(), number: number(path) };
        // Before anybody can connect.
        if group.is_some() {
            chown(path, None, group).map_err(failed)?;
        }
        let mode = if group.is_some() { 0o660 } else { 0o600 };
        fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed)?;
        listen(&socket, BACKLOG).map_err(|error| failed(error.into()))?;
        Ok(Self { listener: UnixListener::from(socket), file, group })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }

    /// What is listened to, who may ask, and what is to be dropped at the end.
    pub(super) fn parts(self) -> (UnixListener, Allowed, impl Sized) {
        (self.listener, Allowed { own: geteuid().as_raw(), group: self.group }, self.file)
    }
}

/// Who may ask.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    own: u32,
    group: Option<u32>,
}

impl Allowed {
    pub(super) fn is(self, user: u32) -> bool {
        user == 0 || user == self.own || self.group.is_some()
    }
}

/// What a life that is over has left there.
fn clear(path: &Path) -> Result<(), String> {
    let there = fs::symlink_metadata(path).map_err(|error| error.to_string())?;
    if !there.file_type().is_socket() {
        return Err("something else is there".to_owned());
    }
    match UnixStream::connect(path) {
        Ok(_) => Err("another agent answers there".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|error| format!("left over, and stays: {error}"))
        }
        Err(error) => Err(format!("whether another agent answers there is not known: {error}")),
    }
}

/// Everybody may see that it is there.
fn make_folder(path: &Path) {
    if let Some(folder) = path.parent() {
        // If there is none afterwards, whoever needs it says so.
        let _ = DirBuilder::new().mode(0o755).create(folder);
    }
}

/// Where the socket of an agent is looked for that answers HTTP on this port. Ports are a network namespace's own, and so
/// are these: by its number, two hosts that share a file system keep theirs apart.
pub fn usual_sockets(port: u16) -> Vec<PathBuf> {
    let Ok(network) = fs::metadata("/proc/self/ns/net") else { return Vec::new() };
    let name = format!("{port}-{}.sock", network.ino());
    let own = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let folders = [Some(PathBuf::from("/run")), own];
    folders.into_iter().flatten().map(|folder| folder.join("bellwether").join(&name)).collect()
}

/// Connections that wait to be accepted. Only those who may ask get there.
const BACKLOG: i32 = 128;
