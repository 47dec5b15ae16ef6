//! What an operator chooses.

/// How keys are owned. The same at all members.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Config {
    slots: u32,
    keepers: usize,
    pub(super) waits: bool,
    pub(super) asks: bool,
}

/// Why a [`Config`] was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// No slot for any key, or more than a member should look through.
    #[error("{slots} slots: must be from 1 to {MOST_SLOTS}")]
    Slots {
        /// The number asked for.
        slots: u32,
    },
    /// Nobody to follow an owner that crashes, or more than a message should name.
    #[error("{keepers} keepers: must be from 1 to {MOST_KEEPERS}")]
    Keepers {
        /// The number asked for.
        keepers: usize,
    },
}

impl Config {
    /// 1,024 slots, each kept by three members besides its owner.
    pub const fn new() -> Self {
        Self { slots: 1_024, keepers: 3, waits: true, asks: true }
    }

    /// Into how many slots keys are divided. More slots spread keys more evenly over many members, from thirty slots a
    /// member on within a half of the mean; what a change of members costs grows with them.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Slots`].
    pub const fn with_slots(self, slots: u32) -> Result<Self, ConfigError> {
        if slots == 0 || slots > MOST_SLOTS {
            return Err(ConfigError::Slots { slots });
        }
        Ok(Self { slots, ..self })
    }

    /// How many members besides the owner know of each slot. So many may crash at once together with the owner, less
    /// one, and the slot has an owner again. More cost more messages when members change.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Keepers`].
    pub const fn with_keepers(self, keepers: usize) -> Result<Self, ConfigError> {
        if keepers == 0 || keepers > MOST_KEEPERS {
            return Err(ConfigError::Keepers { keepers });
        }
        Ok(Self { keepers, ..self })
    }

    /// For checkers that must find what goes wrong: whether a slot's next owner waits for what its last one has told
    /// (K5), and an owner that hands over for what it has told itself (K6).
    pub const fn with_waits(self, waits: bool) -> Self {
        Self { waits, ..self }
    }

    /// For checkers that must find what goes wrong: whether a claimant needs the promises of all living keepers (K4).
    pub const fn with_promises(self, asks: bool) -> Self {
        Self { asks, ..self }
    }

    /// Into how many slots keys are divided.
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// How many members besides the owner know of each slot.
    pub const fn keepers(&self) -> usize {
        self.keepers
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

/// The most slots. Arbitrary; of three members each then knows of so many.
pub const MOST_SLOTS: u32 = 65_536;
/// The most keepers. Arbitrary; a deed still fits a datagram.
pub const MOST_KEEPERS: usize = 8;
