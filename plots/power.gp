# Node power over time: gnuplot -c power.gp STYLE_FOLDER FORMAT TARGET DATA TITLE MEASURED ("" = none)
format = ARG2; target = ARG3; wide = 1000; high = 460
load ARG1."/style.gp"
set title ARG5
set xlabel "time since run_start (s)"
set ylabel "DC power of a node, mean over nodes (kW)"
set yrange [0:*]
set grid x linecolor rgb "#eeeeee" linetype 1 linewidth 1
set key tmargin right horizontal
stats ARG4 skip 1 using 1 nooutput
set xrange [STATS_min:STATS_max + 0.05 * (STATS_max - STATS_min)]  # a measured run may end later
if (strlen(ARG6) > 0) {
  plot ARG6 skip 1 using 1:($2/1000) with lines linestyle 2 title "measured", \
       ARG4 skip 1 using 1:($2/1000) with lines linestyle 1 title "simulated, as the meter reads it"
} else {
  plot ARG4 skip 1 using 1:($2/1000) with lines linestyle 1 title "simulated, as the meter reads it"
}
