//! Results on disk: a CSV file per experiment or series of cells, a manifest for the directory.
//!
//! A finished cell is appended in one write, so that a run that is killed loses only the cell it was at. When
//! an experiment is complete its file is put in the order of its cells. A file that cannot be read as written
//! is an error that names the line; it is never overwritten.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use bellwether_sim::{check::conformance, observe::Summary};
use serde_json::{Value, json};

use crate::experiment::{Cell, Experiment, Measured, Size};

/// A directory of results, all of one size, seed and version.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    manifest: Manifest,
}

/// What all results in a directory have in common.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Manifest {
    /// The version that made them.
    pub version: String,
    /// Their size.
    pub size: String,
    /// The seed they were made from.
    pub seed: u64,
    /// What the simulator and its protocols did when they were made: see [`conformance::behaviour`].
    /// Results of a build that behaves otherwise must not be taken for this one's.
    pub behaviour: String,
}

impl Manifest {
    /// Of this build.
    pub fn new(size: Size, seed: u64) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            size: size.name().into(),
            seed,
            behaviour: conformance::behaviour().to_string(),
        }
    }

    /// The size, if this build knows it.
    pub fn size(&self) -> Option<Size> {
        [Size::Full, Size::Quick].into_iter().find(|size| size.name() == self.size)
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, size, seed, behaviour } = self;
        write!(f, "{size} results of version {version} (behaviour {behaviour}) and seed {seed}")
    }
}

/// Why results could not be read or written. What was there is as it was.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system refused.
    #[error("{path}: {error}")]
    Io {
        /// Where.
        path: String,
        /// What it said.
        error: io::Error,
    },
    /// A results file is not as this program writes it.
    #[error("{path}:{line}: {problem}; move the file away to run its experiment again")]
    Corrupt {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The manifest is not as this program writes it.
    #[error("{path}: {problem}; move the directory away, or name another with --out")]
    BadManifest {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The directory holds results of another kind.
    #[error("{path} holds {found}, these would be {wanted}; name another directory with --out")]
    Other {
        /// The directory.
        path: String,
        /// What it holds.
        found: Box<Manifest>,
        /// What was to be added.
        wanted: Box<Manifest>,
    },
    /// There are no results there.
    #[error("{path} holds no results: `bellwether lab run` makes some")]
    Nothing {
        /// The directory.
        path: String,
    },
    /// Two directories disagree about one cell.
    #[error("{path}: cell {cell:?} of {experiment} differs from the one already merged")]
    Conflict {
        /// The directory merged last.
        path: String,
        /// The experiment.
        experiment: String,
        /// The cell.
        cell: String,
    },
}

/// A cell as stored: the digest of what was run, and what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Digest of the scenario, its runs and its seed.
    pub digest: String,
    /// What was measured.
    pub measured: Vec<Measured>,
}

impl Store {
    /// Opens a directory for results of this kind, making it if need be.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if it holds results of another kind, or cannot be written.
    pub fn create(folder: &Path, manifest: Manifest) -> Result<Self, StoreError> {
        fs::create_dir_all(folder).map_err(|error| io_error(folder, error))?;
        let path = folder.join(MANIFEST);
        if path.exists() {
            let found = read_manifest(&path)?;
            if found != manifest {
                let path = folder.display().to_string();
                let (found, wanted) = (Box::new(found), Box::new(manifest));
                return Err(StoreError::Other { path, found, wanted });
            }
        } else {
            let Manifest { version, size, seed, behaviour } = &manifest;
            let text =
                json!({ "version": version, "size": size, "seed": seed, "behaviour": behaviour });
            write_whole(&path, &format!("{text:#}\n"))?;
        }
        Ok(Self { folder: folder.into(), manifest })
    }

    /// Opens a directory that has results.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if there are none or they cannot be read.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(MANIFEST);
        if !path.exists() {
            return Err(StoreError::Nothing { path: folder.display().to_string() });
        }
        Ok(Self { folder: folder.into(), manifest: read_manifest(&path)? })
    }

    /// What all its results have in common.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The cells of an experiment that are there.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the file is corrupt. A last line cut short by a kill is no corruption: that
    /// cell was not finished.
    pub fn load(&self, experiment: &str) -> Result<BTreeMap<String, Stored>, StoreError> {
        let path = self.path(experiment);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(io_error(&path, error)),
        };
        let corrupt = |line: usize, problem: &str| StoreError::Corrupt {
            path: path.display().to_string(),
            line,
            problem: problem.into(),
        };
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = whole.lines().enumerate().map(|(index, line)| (index + 1, line));
        if lines.next().is_some_and(|(_, header)| header != HEADER) {
            return Err(corrupt(1, "this is not a results file"));
        }
        let mut cells = BTreeMap::<String, Stored>::new();
        let mut begun: Option<(String, usize)> = None;
        for (number, line) in lines {
            let row = Row::parse(line).map_err(|problem| corrupt(number, &problem))?;
            let left = match &begun {
                Some((cell, left)) if *cell == row.cell => *left,
                Some((cell, _)) => {
                    return Err(corrupt(number, &format!("rows of {cell:?} are missing above")));
                }
                None if cells.contains_key(&row.cell) => {
                    return Err(corrupt(number, &format!("{:?} is here twice", row.cell)));
                }
                None => row.metrics,
            };
            begun = (left > 1).then(|| (row.cell.clone(), left - 1));
            let stored = Stored { digest: row.digest, measured: Vec::new() };
            cells.entry(row.cell).or_insert(stored).measured.push(row.measured);
        }
        // A cell is written at once; one that stops half way was cut short.
        if let Some((cell, _)) = begun {
            cells.remove(&cell);
        }
        Ok(cells)
    }

    /// Adds a finished cell.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn append(&self, experiment: &str, cell: &str, stored: &Stored) -> Result<(), StoreError> {
        let path = self.path(experiment);
        let text = rows(cell, stored);
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            if file.metadata()?.len() == 0 {
                return file.write_all(format!("{HEADER}\n{text}").as_bytes());
            }
            file.write_all(text.as_bytes())
        };
        write().map_err(|error| io_error(&path, error))
    }

    /// Replaces an experiment's file by one with these cells, in the order of the experiment. Also what
    /// clears away a cell that was cut short.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`]; the old file is then as it was.
    pub fn rewrite(
        &self,
        experiment: &Experiment,
        cells: &BTreeMap<String, Stored>,
    ) -> Result<(), StoreError> {
        let mut text = format!("{HEADER}\n");
        let size = self.manifest.size().unwrap_or(Size::Full);
        for Cell { name, .. } in (experiment.cells)(size) {
            if let Some(stored) = cells.get(&name) {
                text.push_str(&rows(&name, stored));
            }
        }
        write_whole(&self.path(experiment.kept_as(size)), &text)
    }

    /// Adds the results of `other`.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if they are of another kind, corrupt, or differ where both have a cell.
    pub fn merge(&self, other: &Self, experiments: &[Experiment]) -> Result<usize, StoreError> {
        if other.manifest != self.manifest {
            return Err(StoreError::Other {
                path: self.folder.display().to_string(),
                found: Box::new(self.manifest.clone()),
                wanted: Box::new(other.manifest.clone()),
            });
        }
        // Everything is read and compared before anything is written.
        let size = self.manifest.size().unwrap_or(Size::Full);
        let mut merged = Vec::new();
        let mut seen = BTreeSet::new();
        let mut added = 0;
        for experiment in experiments {
            let kept_as = experiment.kept_as(size);
            let mut cells = self.load(kept_as)?;
            let new = other.load(kept_as)?;
            if new.is_empty() || !seen.insert(kept_as) {
                continue;
            }
            for (cell, stored) in new {
                if cells.get(&cell).is_some_and(|old| *old != stored) {
                    let path = other.folder.display().to_string();
                    let experiment = experiment.id.into();
                    return Err(StoreError::Conflict { path, experiment, cell });
                }
                added += usize::from(cells.insert(cell, stored).is_none());
            }
            merged.push((experiment, cells));
        }
        for (experiment, cells) in merged {
            self.rewrite(experiment, &cells)?;
        }
        Ok(added)
    }

    fn path(&self, experiment: &str) -> PathBuf {
        self.folder.join(format!("{experiment}.csv"))
    }
}

/// One line of a results file: a metric of a cell.
struct Row {
    cell: String,
    digest: String,
    /// How many rows the cell has.
    metrics: usize,
    measured: Measured,
}

impl Row {
    fn parse(line: &str) -> Result<Self, String> {
        let fields: Vec<&str> = line.split(',').collect();
        let [cell, digest, metrics, metric, unit, count, numbers @ ..] = fields.as_slice() else {
            return Err(format!("{} fields, not 11", fields.len()));
        };
        let whole = |field: &str| {
            field.parse::<usize>().map_err(|_| format!("{field:?} is not a whole number"))
        };
        let metrics = whole(metrics)?;
        let count = whole(count)?;
        let numbers: Vec<f64> = numbers
            .iter()
            .map(|field| field.parse().map_err(|_| format!("{field:?} is not a number")))
            .collect::<Result<_, _>>()?;
        let [mean, sd, p50, p95, p99] = numbers[..] else {
            return Err(format!("{} fields, not 11", fields.len()));
        };
        let summary = (count > 0).then_some(Summary { count, mean, sd, p50, p95, p99 });
        let measured = Measured { metric: (*metric).into(), unit: (*unit).into(), summary };
        Ok(Self { cell: (*cell).into(), digest: (*digest).into(), metrics, measured })
    }
}

fn rows(cell: &str, stored: &Stored) -> String {
    let metrics = stored.measured.len();
    let row = |one: &Measured| {
        let none = Summary { count: 0, mean: 0.0, sd: 0.0, p50: 0.0, p95: 0.0, p99: 0.0 };
        let Summary { count, mean, sd, p50, p95, p99 } = one.summary.unwrap_or(none);
        let (digest, metric, unit) = (&stored.digest, &one.metric, &one.unit);
        format!("{cell},{digest},{metrics},{metric},{unit},{count},{mean},{sd},{p50},{p95},{p99}\n")
    };
    stored.measured.iter().map(row).collect()
}

fn read_manifest(path: &Path) -> Result<Manifest, StoreError> {
    let text = fs::read_to_string(path).map_err(|error| io_error(path, error))?;
    let bad =
        |problem: String| StoreError::BadManifest { path: path.display().to_string(), problem };
    let value: Value = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
    let text = |key: &str| match value[key].as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(bad(format!("{key} is missing"))),
    };
    let seed = value["seed"].as_u64().ok_or_else(|| bad("seed is missing".into()))?;
    let (version, size, behaviour) = (text("version")?, text("size")?, text("behaviour")?);
    Ok(Manifest { version, size, seed, behaviour })
}

/// Writes a file whole or not at all.
fn write_whole(path: &Path, text: &str) -> Result<(), StoreError> {
    let partial = path.with_extension("partial");
    let write = || -> io::Result<()> {
        let mut file = File::create(&partial)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&partial, path)
    };
    write().map_err(|error| io_error(path, error))
}

fn io_error(path: &Path, error: io::Error) -> StoreError {
    StoreError::Io { path: path.display().to_string(), error }
}

const MANIFEST: &str = "manifest.json";
const HEADER: &str = "cell,digest,metrics,metric,unit,count,mean,sd,p50,p95,p99";
