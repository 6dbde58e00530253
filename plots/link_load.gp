# Share of the bandwidth of each class of links over a step: gnuplot -c link_load.gp STYLE_FOLDER FORMAT TARGET DATA TITLE CLASSES
# DATA: class, links, capacity, rate of the busiest link, mean rate of those that are loaded, bytes a second.
format = ARG2; target = ARG3; wide = 1000; high = 460
load ARG1."/style.gp"
categories = 1
set title ARG5
set ylabel "mean load over the step (% of the link's bandwidth)"
set key outside right center reverse Left samplen 1.5
set style data histograms
set style histogram clustered gap 1
set boxwidth 0.9
set style fill solid 1 border linecolor rgb "#222222"
set xrange [-0.7:ARG6 - 0.3]
stats ARG4 skip 1 using (100*$4/$3) nooutput
set yrange [0:STATS_max * 1.15]
set xtics scale 0
plot ARG4 skip 1 using (100*$4/$3):xtic(sprintf("%s (%s)", strcol(1), strcol(2))) linestyle 31 title "busiest link", \
     '' skip 1 using (100*$5/$3) linestyle 32 title "mean of the loaded", \
     '' skip 1 using ($0 - 0.17):(100*$4/$3):(sprintf("%.2g", 100*$4/$3)) with labels offset 0, 0.6 notitle, \
     '' skip 1 using ($0 + 0.17):(100*$5/$3):(sprintf("%.2g", 100*$5/$3)) with labels offset 0, 0.6 notitle
