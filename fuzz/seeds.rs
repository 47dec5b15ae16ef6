//! Writes the seeds of every target to `corpus/<target>`, from which libFuzzer starts.

use std::{env, fs, io, path::Path};

fn main() -> io::Result<()> {
    let folder = env::args().nth(1).unwrap_or_else(|| "corpus".to_owned());
    for target in bellwether_fuzz::TARGETS {
        let folder = Path::new(&folder).join(target.name);
        fs::create_dir_all(&folder)?;
        for (at, seed) in (target.seeds)().into_iter().enumerate() {
            fs::write(folder.join(format!("seed-{at}")), seed)?;
        }
    }
    Ok(())
}
