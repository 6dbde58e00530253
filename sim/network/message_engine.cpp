#include "network/message_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "network/message_level.hpp"

namespace tw::network {
namespace {

class MessageEngine final : public Engine {
 public:
  MessageEngine(const Fabric& fabric, const CollectiveOptions& options, const std::vector<LoadClass>& classes,
                const std::vector<ClassParts>& parts, int chunks, bool replay)
      : replay_(replay), plain_(classes.size(), -1), user_of_plain_(classes.size(), 0), parts_(classes.size()) {
    for (size_t k = 0; k < classes.size(); ++k) {
      if (k >= parts.size() || parts[k].empty()) {
        plain_[k] = static_cast<int>(sent_.size());
        user_of_plain_[k] = add_user({classes[k]});
        sent_.push_back(classes[k]);
        continue;
      }
      for (const ClassPart& part : parts[k]) add(fabric, options, part, k, chunks);
    }
    known_.clear();
    std::vector<LoadClass> renumbered = std::move(sent_);
    const std::vector<Link> links = engine_links(fabric, renumbered);
    inner_ = fluid_engine(links, renumbered);
  }

  double now_s() const override { return inner_->now_s(); }
  void at(double t_s, std::function<void()> what) override { inner_->at(t_s, std::move(what)); }
  void run() override { inner_->run(); }
  void start(int load_class, double bytes, std::function<void()> done) override {
    const auto k = static_cast<size_t>(load_class);
    if (plain_[k] >= 0) {
      const size_t user = user_of_plain_[k];
      if (users_[user].links.empty()) return inner_->start(plain_[k], bytes, std::move(done));
      come(user);
      ++users_[user].there;
      return inner_->start(plain_[k], bytes, [this, user, then = std::move(done)] {
        --users_[user].there;
        then();
      });
    }
    auto turn = std::make_shared<Turn>();
    turn->load_class = k, turn->bytes = bytes, turn->done = std::move(done);
    next(turn);
  }

 private:
  // Begin and arrival of each message of a part that had its links for itself, after its begin.
  struct Seen {
    double lasts_s = 0;
    std::vector<std::vector<std::pair<double, double>>> sent;  // [program][message]
  };
  struct Part {
    std::vector<MessageProgram> programs;  // of one byte, a group each; classes are those of `inner_`
    double share = 1;
    int times = 1;
    size_t messages = 0;
    size_t user = 0;
    double begin_s = 0;           // before the first message
    std::map<double, Seen> seen;  // by bytes
  };
  // Who loads links: a part, or a class that is no more than a load.
  struct User {
    std::vector<int> links;        // sorted
    int there = 0;                 // transfers under way
    std::map<size_t, bool> meets;  // other user -> have they a link in common?
  };
  struct Turn {
    size_t load_class = 0, part = 0;
    int time = 0;
    double bytes = 0, begin_s = 0;
    size_t left = 0;                      // messages on their way or to come
    std::vector<std::vector<int>> waits;  // [program][message]
    bool alone = false;                   // nobody else was on its links since it began
    bool replayed = false;                // it takes the time that was seen, and sends nothing
    unsigned version = 0;                 // of its expected end
    Seen sending;
    std::function<void()> done;
  };
  using Shared = std::shared_ptr<Turn>;

  void add(const Fabric& fabric, const CollectiveOptions& options, const ClassPart& part, size_t k, int chunks) {
    CollectiveOptions named = options;
    named.algorithm = part.algorithm;
    named.protocol = part.protocol;
    Part made;
    made.share = part.share, made.times = part.times;
    std::vector<LoadClass> all;
    for (MessageProgram& program : message_programs(fabric, part.operation, part.groups, 1, named, chunks)) {
      std::vector<int> place;
      all.insert(all.end(), program.classes.begin(), program.classes.end());
      made.begin_s = std::max(made.begin_s, program.begin_s);
      for (LoadClass& c : program.classes) place.push_back(class_of(std::move(c)));
      for (Message& m : program.messages) m.load_class = place[static_cast<size_t>(m.load_class)];
      program.classes.clear();
      made.messages += program.messages.size();
      total_ += program.messages.size();
      if (total_ > kMostMessages)
        throw DoesNotFit(
            fmt::format("level 3 sends every message, and the exchanges of this step are more than {} of them: fewer "
                        "GPUs, or --level 2",
                        kMostMessages));
      made.programs.push_back(std::move(program));
    }
    made.user = add_user(all);
    parts_[k].push_back(std::move(made));
  }

  size_t add_user(const std::vector<LoadClass>& classes) {
    std::vector<int> links;
    for (const LoadClass& c : classes)
      for (const LinkUse& use : c.uses) links.push_back(use.link);
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    users_.push_back({std::move(links), 0, {}});
    return users_.size() - 1;
  }

  bool meet(size_t a, size_t b) {
    const auto [it, fresh] = users_[a].meets.try_emplace(b, false);
    if (!fresh) return it->second;
    std::vector<int> common;
    std::set_intersection(users_[a].links.begin(), users_[a].links.end(), users_[b].links.begin(),
                          users_[b].links.end(), std::back_inserter(common));
    return it->second = !common.empty();
  }

  // A user comes to its links. Those who are on them are not alone any more, and send what they have not yet. Was
  // nobody there?
  bool come(size_t user) {
    bool alone = true;
    for (size_t other = 0; other < users_.size(); ++other)
      if (users_[other].there > 0 && meet(user, other)) alone = false;
    for (const Shared& turn : under_way_) {
      if (!meet(user, part_of(turn).user)) continue;
      alone = turn->alone = false;
      if (turn->replayed) unfold(turn);
    }
    return alone;
  }

  Part& part_of(const Shared& turn) { return parts_[turn->load_class][turn->part]; }

  // Messages between the same ranks over the same links are one class, whatever they belong to.
  int class_of(LoadClass c) {
    std::vector<std::pair<int, double>> key{{-1, c.latency_s}};
    for (const LinkUse& use : c.uses) key.emplace_back(use.link, use.weight);
    const auto [it, fresh] = known_.try_emplace(std::move(key), static_cast<int>(sent_.size()));
    if (fresh) sent_.push_back(std::move(c));
    return it->second;
  }

  void next(const Shared& turn) {
    std::vector<Part>& parts = parts_[turn->load_class];
    if (turn->part == parts.size()) return turn->done();
    const Part& part = parts[turn->part];
    if (turn->time == part.times || part.messages == 0) {
      turn->time = 0;
      ++turn->part;
      return next(turn);
    }
    ++turn->time;
    ++turn->version;
    turn->begin_s = now_s();
    turn->alone = come(part.user);
    under_way_.push_back(turn);
    const auto seen = part.seen.find(turn->bytes);
    turn->replayed = replay_ && turn->alone && seen != part.seen.end();
    if (!turn->replayed) return play(turn);
    inner_->at(turn->begin_s + seen->second.lasts_s, [this, turn, version = turn->version] {
      if (turn->version == version) end(turn);
    });
  }

  // All messages of a part, from its begin.
  void play(const Shared& turn) {
    const Part& part = part_of(turn);
    wait(turn);
    turn->sending.sent.clear();
    for (const MessageProgram& p : part.programs) turn->sending.sent.emplace_back(p.messages.size());
    inner_->at(turn->begin_s + part.begin_s, [this, turn] {
      const Part& here = part_of(turn);
      for (size_t p = 0; p < here.programs.size(); ++p)
        for (size_t i = 0; i < here.programs[p].messages.size(); ++i)
          if (here.programs[p].messages[i].waits_for == 0) send(turn, p, i);
    });
  }

  void wait(const Shared& turn) {
    turn->left = part_of(turn).messages;
    turn->waits.clear();
    for (const MessageProgram& p : part_of(turn).programs) {
      turn->waits.emplace_back();
      for (const Message& m : p.messages) turn->waits.back().push_back(m.waits_for);
    }
  }

  // Somebody comes while a part is replayed: its messages go on from where they were seen at this time. Of one under
  // way the same part is left as of its time.
  void unfold(const Shared& turn) {
    const Part& part = part_of(turn);
    const Seen& seen = part.seen.at(turn->bytes);
    const double past_s = now_s() - turn->begin_s;
    if (past_s >= seen.lasts_s) return;  // it ends now
    turn->replayed = false;
    ++turn->version;
    if (past_s < part.begin_s) return play(turn);
    wait(turn);
    turn->sending = seen;
    for (size_t p = 0; p < seen.sent.size(); ++p)
      for (size_t i = 0; i < seen.sent[p].size(); ++i) {
        if (seen.sent[p][i].second > past_s) continue;
        --turn->left;
        for (const int then : part.programs[p].messages[i].then) --turn->waits[p][static_cast<size_t>(then)];
      }
    for (size_t p = 0; p < seen.sent.size(); ++p)
      for (size_t i = 0; i < seen.sent[p].size(); ++i) {
        const auto [begin_s, arrival_s] = seen.sent[p][i];
        if (begin_s <= past_s && arrival_s > past_s) send(turn, p, i, (arrival_s - past_s) / (arrival_s - begin_s));
      }
  }

  void send(const Shared& turn, size_t program, size_t message, double rest = 1) {
    const Part& part = part_of(turn);
    const Message& m = part.programs[program].messages[message];
    turn->sending.sent[program][message].first = now_s() - turn->begin_s;
    inner_->start(m.load_class, rest * m.bytes * turn->bytes * part.share, [this, turn, program, message] {
      turn->sending.sent[program][message].second = now_s() - turn->begin_s;
      for (const int then : part_of(turn).programs[program].messages[message].then)
        if (--turn->waits[program][static_cast<size_t>(then)] == 0) send(turn, program, static_cast<size_t>(then));
      if (--turn->left == 0) end(turn);
    });
  }

  void end(const Shared& turn) {
    under_way_.erase(std::find(under_way_.begin(), under_way_.end(), turn));
    if (replay_ && turn->alone && !turn->replayed) {
      turn->sending.lasts_s = now_s() - turn->begin_s;
      part_of(turn).seen[turn->bytes] = std::move(turn->sending);
    }
    next(turn);
  }

  const bool replay_;
  std::vector<int> plain_;                // class of `inner_`, or -1
  std::vector<size_t> user_of_plain_;     // [class]
  std::vector<std::vector<Part>> parts_;  // [class]
  std::vector<User> users_;
  std::vector<Shared> under_way_;
  std::vector<LoadClass> sent_;
  std::map<std::vector<std::pair<int, double>>, int> known_;
  size_t total_ = 0;
  std::unique_ptr<Engine> inner_;
};

}  // namespace

std::unique_ptr<Engine> message_engine(const Fabric& fabric, const CollectiveOptions& options,
                                       const std::vector<LoadClass>& classes, const std::vector<ClassParts>& parts,
                                       int chunks, bool replay) {
  return std::make_unique<MessageEngine>(fabric, options, classes, parts, chunks, replay);
}

}  // namespace tw::network
