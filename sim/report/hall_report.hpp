// What `trainwatt hall -o` writes: hall.json, tables, figures.
#pragma once

#include <string>

#include "report/figures.hpp"
#include "study/hall_study.hpp"

namespace tw::report {

std::string hall_json(const HallAnswer& answer);
std::string hall_table(const HallAnswer& answer);  // for people
std::string hall_jobs_csv(const HallAnswer& answer);
// From one change of anything to the next, SI; no value where there is no limit.
std::string hall_power_csv(const hall::HallOutcome& outcome);
// Writes the data of the figures into the folder: jobs and power over time; what the utility sees.
Figures hall_figures(const std::string& folder, const HallAnswer& answer);

// The HTML page of such a folder.
std::string hall_page(const std::string& folder);

}  // namespace tw::report
