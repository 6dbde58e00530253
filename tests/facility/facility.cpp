#include "facility/facility.hpp"

#include <catch2/catch.hpp>

#include "core/document.hpp"
#include "core/units.hpp"
#include "paths.hpp"

namespace {

using namespace tw;

EnergyWindow window(double nodes_j, double network_j, double loss_j) {
  EnergyWindow w;
  w.nodes_dc_j = nodes_j;
  w.network_j = network_j;
  w.rectifier_loss_j = loss_j;
  w.total_dc_j = nodes_j + network_j;
  w.total_ac_j = *w.total_dc_j + loss_j;
  return w;
}

Site shipped(const std::string& name) {
  return load<Site>(source_folder() + "/models/sites/" + name + ".json");
}

}  // namespace

TEST_CASE("published facility energy and the carbon that follows from the stated factor") {
  const Site site = shipped("singapore-sin02");
  struct Row {
    double dc_j, kwh, kg;
  };
  for (const Row& row : {Row{11769962, 3.596, 1.457}, Row{20381549, 6.228, 2.522}, Row{45837402, 14.006, 5.672}}) {
    const FacilityEnergy f = facility_energy(site, window(row.dc_j, 0, 0.02 * row.dc_j));
    CHECK(*f.facility_j / joules_per_kwh == Approx(row.kwh).margin(5e-4));
    CHECK(*f.kg_co2e == Approx(row.kg).margin(1e-3));
    CHECK(*f.base_j + *f.ppue_j + *f.hall_j == Approx(*f.facility_j).epsilon(1e-12));
    CHECK(*f.ppue_j == Approx(0.02 * row.dc_j));
  }
}

TEST_CASE("the side of the PUE decides the base") {
  Site site = shipped("singapore-sin02");
  const EnergyWindow w = window(1e6, 1e5, 3e4);
  CHECK(*facility_energy(site, w).base_j == Approx(1.1e6));
  site.pue_base = PueBase::ac;
  CHECK(*facility_energy(site, w).base_j == Approx(1.13e6));
  EnergyWindow unknown;
  unknown.nodes_dc_j = 1e6;
  CHECK_FALSE(facility_energy(site, unknown).facility_j.has_value());
}

TEST_CASE("a partial PUE above the PUE is a fault") {
  Site site = shipped("oklahoma-tpu-v4");
  site.ppue = 1.2;
  Faults faults;
  const Document document;
  check_site(site, ReadContext{&document, "/site", &faults, {}});
  CHECK(faults.size() == 1);
}
