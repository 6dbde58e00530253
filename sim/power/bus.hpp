// Buses: which nodes share a DC bus, and what its rectifiers lose.
#pragma once

#include <string>
#include <vector>

#include "topology/cluster.hpp"

namespace tw {

// Bus of a node: nodes of a scalable unit fill its bays in order, so a bus never spans two units.
int bus_of(const Cluster& cluster, int node);

double bus_rating_w(const PowerDelivery& delivery);  // DC, all rectifiers on
double shelf_rating_w(const PowerDelivery& delivery);

// Loss of the rectifiers of one bus that delivers `dc_w`: fixed part of every rectifier that is on plus a share of the
// output (measured: 129.7 W + 7.98 W per kW over eight rectifiers).
double rectifier_loss_w(const PowerDelivery& delivery, double dc_w);

}  // namespace tw
