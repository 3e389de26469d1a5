// Added to Kueue's minimalkueue by kueue_scale_up.py: the controllers that it leaves out.

package main

import (
	"context"
	"flag"

	autoscaling "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	jobsetapi "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/controller/admissionchecks/provisioning"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	"sigs.k8s.io/kueue/pkg/controller/jobs/job"
	"sigs.k8s.io/kueue/pkg/controller/jobs/jobset"
)

var withScaleUp = flag.Bool("scale-up", false, "the check of ProvisioningRequests, Jobs and JobSets")

func init() {
	utilruntime.Must(autoscaling.AddToScheme(scheme))
	utilruntime.Must(jobsetapi.AddToScheme(scheme))
}

// setupScaleUp starts them, as cmd/kueue/main.go does.
func setupScaleUp(ctx context.Context, mgr ctrl.Manager, cCache *schdcache.Cache, queues *qcache.Manager) error {
	if !*withScaleUp {
		return nil
	}
	if err := provisioning.SetupIndexer(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	check, err := provisioning.NewController(mgr.GetClient(), mgr.GetEventRecorder("provisioning"), nil)
	if err != nil {
		return err
	}
	if err := check.SetupWithManager(mgr); err != nil {
		return err
	}
	options := []jobframework.Option{jobframework.WithCache(cCache), jobframework.WithQueues(queues)}
	if err := job.SetupIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	jobs, err := job.NewReconciler(ctx, mgr.GetClient(), mgr.GetFieldIndexer(), mgr.GetEventRecorder("job"), options...)
	if err != nil {
		return err
	}
	if err := jobs.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := jobset.SetupIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	jobSets, err := jobset.NewReconciler(ctx, mgr.GetClient(), mgr.GetFieldIndexer(), mgr.GetEventRecorder("jobset"), options...)
	if err != nil {
		return err
	}
	return jobSets.SetupWithManager(mgr)
}
