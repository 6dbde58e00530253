// Buses: which nodes share a DC bus, and what its rectifiers can give.
#pragma once

#include <string>
#include <vector>

#include "topology/cluster.hpp"

namespace tw {

// Bus of a node: nodes of a scalable unit fill its bays in order, so a bus never spans two units.
int bus_of(const Cluster& cluster, int node);

double bus_rating_w(const PowerDelivery& delivery);  // DC, all rectifiers on
double shelf_rating_w(const PowerDelivery& delivery);
int bus_rectifiers(const PowerDelivery& delivery);  // of one bus

}  // namespace tw
