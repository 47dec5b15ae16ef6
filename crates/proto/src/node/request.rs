//! What a node is told by its host and asked by people.

use super::{Command, Contest, Fact, Node};
use crate::{
    election::{announce, churn_tolerant},
    machine::{OutboxOf, Rejected},
    membership::medley::ContactChange,
    time::Time,
};

impl Node {
    pub(super) fn on_fact(
        &mut self,
        now: Time,
        fact: Fact,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        match fact {
            Fact::Met(id) => self.feed_stack(now, ContactChange::Found { id }),
            Fact::InRange(group, ids) => {
                let at = self.position(group)?;
                self.with(now, at, out, |contest, port| {
                    if let Contest::Central(central) = contest {
                        central.in_range(&ids, port);
                    }
                });
            }
            // These were seen to before anything else.
            Fact::Superseded(_) | Fact::Writing | Fact::Kept | Fact::NotKept => {}
        }
        Ok(())
    }

    pub(super) fn on_command(
        &mut self,
        now: Time,
        command: Command,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        match command {
            Command::Elect(group) => match self.seats[self.position(group)?].contest {
                Contest::Eventual => {
                    self.command_stack(now, group, churn_tolerant::Command::Elect);
                }
                _ => return Err(Rejected::Refused { why: "only eventual elections are called" }),
            },
            Command::Resign(group) => {
                let at = self.position(group)?;
                if let Contest::Eventual = self.seats[at].contest {
                    if self.stack.membership().is_empty() {
                        return Err(Rejected::Refused { why: "there is nobody else to lead" });
                    }
                    self.command_stack(now, group, churn_tolerant::Command::Resign);
                }
                return self.with(now, at, out, |contest, port| match contest {
                    Contest::Eventual => Ok(()),
                    Contest::Announced(announced) => {
                        announced.command(announce::Command::Resign, port);
                        Ok(())
                    }
                    Contest::Leased(leased) => leased.resign(port),
                    Contest::Learned(learned) => {
                        learned.resign(port);
                        Ok(())
                    }
                    Contest::Central(_) => Err(Rejected::Refused { why: PLACE }),
                });
            }
            Command::Transfer(group, to) => {
                let at = self.position(group)?;
                if self.stack.membership().member(to).is_none() {
                    return Err(Rejected::Refused { why: "that member is not alive" });
                }
                if let Contest::Eventual = self.seats[at].contest {
                    self.command_stack(now, group, churn_tolerant::Command::Transfer(to));
                }
                return self.with(now, at, out, |contest, port| match contest {
                    Contest::Eventual => Ok(()),
                    Contest::Announced(_) => Err(Rejected::Refused {
                        why: "it is announced: the best of those that hear us leads; resign instead",
                    }),
                    Contest::Leased(leased) => leased.transfer(to, port),
                    Contest::Learned(_) => Err(Rejected::Refused {
                        why: "it is learned: the voters choose; resign instead",
                    }),
                    Contest::Central(_) => Err(Rejected::Refused { why: PLACE }),
                });
            }
            Command::Report { election: group, of, percent } => {
                let at = self.position(group)?;
                if self.plan.seats[at].learns {
                    if of != self.me.id {
                        return Err(Rejected::Refused {
                            why: "every node keeps its own record there; ask that node's agent",
                        });
                    }
                    self.doubt_ourselves(f64::from(percent.min(100)) / 100.0);
                    return Ok(());
                }
                return self.with(now, at, out, |contest, port| match contest {
                    Contest::Learned(learned) => learned.report(of, percent, port),
                    _ => Err(Rejected::Refused {
                        why: "how members do is learnt only where mode = \"learned\"",
                    }),
                });
            }
            Command::Priority(group, worth) => {
                let at = self.position(group)?;
                if !self.plan.seats[at].learns {
                    self.plan.seats[at].standing.attribute = worth;
                    self.introduce(now);
                }
            }
            Command::Bar(groups) => {
                for seat in &mut self.seats {
                    seat.dirty = groups.contains(&seat.group);
                }
                self.observe(now, out);
                self.introduce(now);
            }
            Command::Introduce(about) => {
                if self.fits(&about).is_err() {
                    return Err(Rejected::Refused { why: "name, tags and elections are too long" });
                }
                self.plan.about = *about;
                self.introduce(now);
            }
            Command::Advertise(addresses) => {
                self.plan.addresses = addresses;
                self.introduce(now);
            }
        }
        Ok(())
    }
}

const PLACE: &str =
    "it is central: whoever has the best place on the map leads, and this node has it";
