// Ways to cut a network's layers into pipeline stages that are worth a look. `further`: its next-token layers.
#pragma once

#include <vector>

namespace tw {

// Whether stages differ so much that fewer of them would be as fast: the busiest holds more than a quarter above the
// mean (layers_of_chunks; more stages than layers, too).
bool stages_too_uneven(int layers, int pp, int further = 0);

// Numbers of virtual stages (chunks of a stage) with `pp` stages, rising. Those that make chunks alike (even_chunks);
// where no number does, all that leave no chunk without a layer: the stages then differ by one layer. `every`: all of
// them in any case, for schedules that ask for a number of their own. At most 4 (pp - 1), where the bubble,
// (pp - 1) / vp of a micro-batch's time in a stage, is a quarter of one: more chunks gain hardly anything.
std::vector<int> virtual_stages(int layers, int pp, bool every, int further = 0);

}  // namespace tw
