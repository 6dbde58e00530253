# Plans by memory and time: gnuplot -c plan_search.gp STYLE_FOLDER FORMAT TARGET DATA TITLE Y_TEXT CAPACITY_BYTES
# DATA: memory_bytes, time_s, kind (0: nothing is smaller and faster, 1: simulated, 2: too large, estimated), plan.
format = ARG2; target = ARG3; wide = 1000; high = 560
load ARG1."/style.gp"
set title ARG5
set xlabel "memory of a GPU (GiB)"
set ylabel ARG6
set grid x y linecolor rgb "#dddddd" linetype 1 linewidth 1
set key outside right center reverse Left samplen 1.5
gib = 1073741824.0
capacity = ARG7 / gib
stats ARG4 skip 1 using ($1/gib) name "M" nooutput
stats ARG4 skip 1 using 2 name "T" nooutput
stats ARG4 skip 1 using ($3 == 2) name "LARGE" nooutput
# Plans of more than thrice the GPU's memory would push all others to the edge: they are counted, not drawn.
most = (capacity > 0 && M_max > 3 * capacity) ? 3 * capacity : 1.05 * M_max
stats ARG4 skip 1 using ($1/gib > most) name "OUT" nooutput
set xrange [0:most]
low = 0.9 * T_min; high_y = T_max + 0.08 * (T_max - low)
set yrange [low:high_y]
set datafile missing NaN
if (capacity > 0) { set arrow from capacity, low to capacity, high_y nohead linestyle 6; if (capacity < 0.5 * most) { set label "what the GPU has" at capacity, high_y left offset 0.5, -0.8 textcolor rgb "#b2182b" } else { set label "what the GPU has" at capacity, high_y right offset -0.5, -0.8 textcolor rgb "#b2182b" } }
plot ARG4 skip 1 using ($1/gib):($3 == 0 ? $2 : NaN) with linespoints linestyle 11 title "smallest at its time", \
     '' skip 1 using ($1/gib):($3 == 1 ? $2 : NaN) with points linecolor rgb "#e08214" pointtype 6 pointsize 1.2 linewidth 1.8 title "simulated", \
     '' skip 1 using ($1/gib):(LARGE_sum > 0 && $3 == 2 ? $2 : NaN) with points linecolor rgb "#7a7a7a" pointtype 2 pointsize 1.1 title (LARGE_sum > 0 ? (OUT_sum > 0 ? sprintf("too large (+%d beyond)", int(OUT_sum)) : "too large, estimated") : "")
