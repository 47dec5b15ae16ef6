// What each mode promises, and what it means when something does not hold.

export const PROMISES = {
  leased: 'At most one node may act at any instant, if clocks keep to the bound; without a majority nobody may.',
  learned: 'At most one leader to an epoch, by majority; an old leader may go on until it hears of the new one.',
  eventual: 'Once it is quiet, one leader in each connected part; until then two may believe they lead, under different epochs.',
  announced: 'Once it is quiet, one leader for all that hear each other; nothing is promised while they are apart.',
  central: 'Once it is quiet, the most central node of each connected part leads it; there are no epochs.',
};

const MEANING = {
  one_leader_per_epoch: 'Two nodes led under one epoch: whoever is told it cannot tell them apart.',
  one_leader_per_term: 'Two nodes won the same term.',
  epoch_never_goes_back: 'A node named an older epoch after a newer one.',
  answers_are_honest: 'A node gave an answer that contradicts itself.',
  one_may_act: 'Two nodes could act at the same instant.',
  one_valid_lease: 'Two leases were valid at the same instant.',
  leads_on_what_is_kept: 'A node led on a token that its disk had not kept.',
  acts_when_confirmed: 'A node acted before its claim was confirmed.',
  older_life_stops: 'An earlier life of a node ran on beside the later one.',
  no_resurrection: 'A life that had ended was listed again.',
  incarnation_monotone: 'A node went back to an earlier incarnation.',
  live_not_dead_for_long: 'A live, reachable member was missing for longer than allowed.',
  completeness: 'Somebody who is gone stayed listed for longer than allowed.',
  time_bounded_detection: 'A crash was found later than promised.',
  one_of_two_wins: 'Of two nodes in an arbitration both went, or both stayed.',
  nobody_buried_alive: 'A live node was declared dead.',
  own_view: 'A node counted others as its own part than its detector did.',
  settles: 'Nobody settled though it was quiet.',
};

export const meaning = (invariant) => MEANING[invariant] ?? invariant.replaceAll('_', ' ');
